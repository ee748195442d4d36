#include "serve.h"

#include "http/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_BYTES = 16 * 1024, BODY_BYTES_MAX = 1024 * 1024, WORD_BYTES = 128, IDLE_S = 30 };

struct shop_request {
    char method[RV_HTTP_METHOD_BYTES_MAX + 1];
    char path[WORD_BYTES];
    struct rv_str query;
    const struct rv_http_request *head;
};

struct door {
    shop_handler *handler;
    void *self;
    int fd;
};

const char *shop_method(const struct shop_request *request)
{
    return request->method;
}

const char *shop_path(const struct shop_request *request)
{
    return request->path;
}

static bool text_copy(struct rv_str text, char *ret, size_t bytes)
{
    if (text.at == NULL || text.len >= bytes)
        return false;
    memcpy(ret, text.at, text.len);
    ret[text.len] = '\0';
    return true;
}

/* Takes what stands before the character off, or all of the text. */
static struct rv_str take_until(struct rv_str *rest, char end)
{
    const char *found = rest->len > 0 ? memchr(rest->at, end, rest->len) : NULL;
    struct rv_str piece = *rest;
    if (found == NULL) {
        *rest = RV_STR_NONE;
        return piece;
    }
    piece.len = (size_t)(found - rest->at);
    *rest = (struct rv_str){found + 1, rest->len - piece.len - 1};
    return piece;
}

/* The reader has seen to it that two hex digits follow each percent sign. */
static void percent_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        char c = *from == '+' ? ' ' : *from;
        if (c == '%') {
            c = (char)(rv_hex_digit(from[1]) * 16 + rv_hex_digit(from[2]));
            from += 2;
        }
        *to++ = c;
    }
    *to = '\0';
}

bool shop_argument(const struct shop_request *request, const char *name, char *ret, size_t bytes)
{
    struct rv_str query = request->query;
    while (query.len > 0) {
        struct rv_str value = take_until(&query, '&');
        struct rv_str its_name = take_until(&value, '=');
        if (!rv_str_is(its_name, name))
            continue;
        if (!text_copy(value, ret, bytes))
            return false;
        percent_decode(ret);
        return true;
    }
    return false;
}

bool shop_header(const struct shop_request *request, const char *name, char *ret, size_t bytes)
{
    return text_copy(rv_http_field(request->head, name, NULL), ret, bytes);
}

static bool bytes_send(int fd, struct rv_str bytes)
{
    while (bytes.len > 0) {
        ssize_t sent = send(fd, bytes.at, bytes.len, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes = (struct rv_str){bytes.at + sent, bytes.len - (size_t)sent};
    }
    return true;
}

static bool answer_send(int fd, const struct rv_http_request *head,
                        const struct shop_answer *answer)
{
    struct rv_buf out;
    char date[RV_HTTP_DATE_BYTES];
    struct rv_str body = rv_str_of(answer->body);
    rv_buf_init(&out, INPUT_BYTES);
    rv_http_date(time(NULL), date);
    rv_http_write_head(&out, &(struct rv_http_answer){.status = (int)answer->status,
                                                      .minor = head->minor,
                                                      .close = head->close,
                                                      .length = body.len,
                                                      .type = "application/json",
                                                      .date = date});
    if (answer->problem != NULL)
        rv_http_write_field(&out, "Problem-Type", rv_str_of(answer->problem));
    if (answer->status == 503)
        rv_http_write_field(&out, "Retry-After", RV_STR("1"));
    rv_http_write_end(&out);
    rv_buf_add_str(&out, body);
    bool sent = out.failed == RV_OK && bytes_send(fd, rv_buf_str(&out));
    rv_buf_done(&out);
    return sent && !head->close;
}

/* The whole request is here; false: the connection ends. */
static bool request_serve(const struct door *door, const struct rv_http_request *head)
{
    struct shop_request request = {.query = head->target, .head = head};
    struct shop_answer answer = {.status = 404};
    struct rv_str path = take_until(&request.query, '?');
    if (!text_copy(head->method, request.method, sizeof request.method) ||
        !text_copy(path, request.path, sizeof request.path))
        return false;
    return door->handler(door->self, &request, &answer) && answer_send(door->fd, head, &answer);
}

static bool input_read(const struct door *door, struct rv_http_reader *reader, struct rv_str input)
{
    size_t taken;
    for (;;) {
        enum rv_http_event event = rv_http_reader_feed(reader, input, &taken);
        input = (struct rv_str){input.at + taken, input.len - taken};
        if (event == RV_HTTP_MORE)
            return true;
        if (event == RV_HTTP_REFUSED)
            return false;
        if (event == RV_HTTP_END) {
            if (!request_serve(door, &reader->request))
                return false;
            rv_http_reader_next(reader);
        }
    }
}

static void *connection_run(void *self)
{
    struct door *door = self;
    struct rv_http_reader reader;
    struct timeval idle = {.tv_sec = IDLE_S};
    char input[INPUT_BYTES];
    ssize_t got;
    (void)setsockopt(door->fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle);
    rv_http_reader_init(&reader, BODY_BYTES_MAX);
    while ((got = recv(door->fd, input, sizeof input, 0)) > 0 &&
           input_read(door, &reader, (struct rv_str){input, (size_t)got}))
        ;
    rv_http_reader_done(&reader);
    close(door->fd);
    free(door);
    return NULL;
}

bool shop_listen(uint16_t port, int *ret_fd, uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t bytes = sizeof address;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, bytes) != 0 || listen(fd, 512) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &bytes) != 0)
        return false;
    *ret_fd = fd;
    *ret_port = ntohs(address.sin_port);
    return true;
}

void shop_serve(int fd, shop_handler *handler, void *self)
{
    pthread_attr_t detached;
    pthread_t thread;
    if (pthread_attr_init(&detached) != 0 ||
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED) != 0)
        abort();
    for (;;) {
        struct door *door = malloc(sizeof *door);
        int its = accept(fd, NULL, NULL);
        if (door == NULL || its < 0) {
            free(door);
            continue;
        }
        *door = (struct door){handler, self, its};
        if (pthread_create(&thread, &detached, connection_run, door) != 0) {
            close(its);
            free(door);
        }
    }
}
