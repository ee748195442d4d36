/* A message as its receiver sees it on the wire, and one that cannot be signed. */
#include "notify/webhook/webhook.h"
#include "scheduler/call.h"

#include "../lib/loopback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-0c15e2a1f4b6d870-01"
#define BODY "{\"n\":1}"

enum { PATIENCE_MS = 20000, TEXT_BYTES = 4096 };

struct scene {
    struct loopback *server;
    struct rv_egress *egress;
    struct rv_outbound *outbound;
    struct rv_secrets *secrets;
    struct rv_mailbox mailbox;
    struct rv_webhook webhook;
    char origin[64];
    char seen[TEXT_BYTES]; /* read after the call that tells of it */
};

static bool serve(const struct loopback_request *request)
{
    struct scene *scene = request->user;
    snprintf(scene->seen, sizeof scene->seen, "%s%.*s", request->head, (int)request->body_bytes,
             request->body);
    return loopback_say(request->fd, "HTTP/1.1 204 No Content\r\n\r\n");
}

static void scene_open(struct scene *scene, const char *secrets)
{
    char why[RV_EGRESS_WHY_BYTES], reason[RV_SECRETS_WHY_BYTES];
    *scene = (struct scene){.server = loopback_open(serve, scene), .egress = rv_egress_new()};
    assert_non_null(scene->server);
    assert_non_null(scene->egress);
    snprintf(scene->origin, sizeof scene->origin, "http://127.0.0.1:%u",
             loopback_port(scene->server));
    assert_int_equal(rv_egress_add(scene->egress, rv_str_of(scene->origin), why), RV_OK);
    struct rv_outbound_options options = {.egress = scene->egress};
    assert_int_equal(rv_outbound_open(&options, &scene->outbound), RV_OK);
    assert_int_equal(rv_secrets_parse(rv_str_of(secrets), &scene->secrets, reason), RV_OK);
    rv_mailbox_init(&scene->mailbox, offsetof(struct rv_call, next));
    scene->webhook = (struct rv_webhook){.outbound = scene->outbound,
                                         .egress = scene->egress,
                                         .secrets = scene->secrets,
                                         .mailbox = &scene->mailbox};
}

static void scene_close(struct scene *scene)
{
    rv_outbound_close(scene->outbound);
    rv_egress_free(scene->egress);
    rv_secrets_free(scene->secrets);
    rv_mailbox_done(&scene->mailbox);
    loopback_close(scene->server);
}

/* Sends message 3 of task 1; what the scheduler hears of it, to be finished. */
static struct rv_call *told(struct scene *scene, struct rv_str traceparent)
{
    struct rv_scheduler_outlet outlet = rv_webhook_outlet(&scene->webhook);
    char url[96];
    snprintf(url, sizeof url, "%s/hook?a=b", scene->origin);
    struct rv_notice notice = {.task = {1},
                               .number = 3,
                               .url = rv_str_of(url),
                               .destination = rv_str_of(scene->origin),
                               .body = RV_STR(BODY),
                               .traceparent = traceparent};
    struct rv_notice *copy = rv_notice_copy(&notice);
    void *item = NULL;
    assert_non_null(copy);
    outlet.send(outlet.self, copy);
    assert_int_equal(rv_mailbox_take(&scene->mailbox, &item, 1, PATIENCE_MS), 1);
    struct rv_call *call = item;
    assert_int_equal(call->kind, RV_CALL_DELIVERED);
    assert_int_equal(call->u.delivered.count, 1);
    assert_int_equal(call->u.delivered.items[0].task.value, 1);
    assert_int_equal(call->u.delivered.items[0].number, 3);
    return call;
}

/* Byte by byte, with the signature that belongs to the timestamp. */
static void assert_seen(const struct scene *scene, const char *traceparent_line)
{
    char wanted[TEXT_BYTES], id[RV_ID_TEXT_BYTES + 16], task[RV_ID_TEXT_BYTES];
    static const char name[] = "webhook-timestamp: ", agent[] = "User-Agent: reeve/";
    const char *at = strstr(scene->seen, name), *version = strstr(scene->seen, agent);
    assert_non_null(at);
    assert_non_null(version);
    version += sizeof agent - 1;
    long long timestamp = strtoll(at + sizeof name - 1, NULL, 10);
    snprintf(id, sizeof id, "%s.3", rv_task_text((struct rv_task_id){1}, task).at);
    struct rv_buf signature;
    rv_buf_init(&signature, 256);
    assert_true(rv_secrets_sign(scene->secrets, rv_str_of(scene->origin), rv_str_of(id), timestamp,
                                RV_STR(BODY), &signature));
    snprintf(wanted, sizeof wanted,
             "POST /hook?a=b HTTP/1.1\r\nHost: %s\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n"
             "Content-Type: application/json\r\nUser-Agent: reeve/%.*s\r\n"
             "webhook-id: %s\r\nwebhook-timestamp: %lld\r\nwebhook-signature: %.*s\r\n%s"
             "Content-Length: %zu\r\n\r\n" BODY,
             scene->origin + strlen("http://"), (int)strcspn(version, "\r"), version, id, timestamp,
             RV_STR_FMT(rv_buf_str(&signature)), traceparent_line, strlen(BODY));
    assert_string_equal(scene->seen, wanted);
    rv_buf_done(&signature);
}

static void a_receiver_sees_a_signed_request(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, SECRET "\n");
    struct rv_call *call = told(&scene, RV_STR(PARENT));
    assert_true(call->u.delivered.items[0].taken);
    call->finish(call);
    assert_seen(&scene, "traceparent: " PARENT "\r\n");
    call = told(&scene, RV_STR_NONE);
    assert_true(call->u.delivered.items[0].taken);
    call->finish(call);
    assert_seen(&scene, "");
    scene_close(&scene);
}

/* Nothing leaves, and the operator hears of the cure. */
static void without_a_secret_nothing_is_sent(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, "https://another.example " SECRET "\n");
    struct rv_call *call = told(&scene, RV_STR(PARENT));
    const struct rv_notice_result *result = &call->u.delivered.items[0];
    assert_false(result->taken);
    assert_false(result->alive);
    assert_false(result->unsent); /* a pause would not help: it counts as a failure */
    assert_non_null(strstr(result->why.at, "--webhook-secret-file"));
    call->finish(call);
    assert_int_equal(loopback_accepted(scene.server), 0);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receiver_sees_a_signed_request),
        cmocka_unit_test(without_a_secret_nothing_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
