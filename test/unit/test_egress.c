/* Where calls may go: addresses, URLs, the list. No network. */
#include "outbound/egress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void addresses_lead_where_the_registries_say(void **state)
{
    static const struct {
        const char *text;
        enum rv_address_kind kind;
    } rows[] = {
        {"1.1.1.1", RV_ADDRESS_PUBLIC},
        {"8.8.8.8", RV_ADDRESS_PUBLIC},
        {"100.63.255.255", RV_ADDRESS_PUBLIC},
        {"100.128.0.0", RV_ADDRESS_PUBLIC},
        {"172.15.255.255", RV_ADDRESS_PUBLIC},
        {"172.32.0.0", RV_ADDRESS_PUBLIC},
        {"169.253.255.255", RV_ADDRESS_PUBLIC},
        {"223.255.255.255", RV_ADDRESS_PUBLIC},
        {"10.0.0.1", RV_ADDRESS_PRIVATE},
        {"100.64.0.1", RV_ADDRESS_PRIVATE},
        {"127.0.0.1", RV_ADDRESS_PRIVATE},
        {"127.255.255.254", RV_ADDRESS_PRIVATE},
        {"172.16.0.0", RV_ADDRESS_PRIVATE},
        {"172.31.255.255", RV_ADDRESS_PRIVATE},
        {"192.168.1.1", RV_ADDRESS_PRIVATE},
        {"0.0.0.0", RV_ADDRESS_SPECIAL},
        {"0.1.2.3", RV_ADDRESS_SPECIAL},
        {"100.100.100.200", RV_ADDRESS_SPECIAL},
        {"168.63.129.16", RV_ADDRESS_SPECIAL},
        {"169.254.169.254", RV_ADDRESS_SPECIAL},
        {"192.0.0.8", RV_ADDRESS_SPECIAL},
        {"198.19.255.255", RV_ADDRESS_SPECIAL},
        {"203.0.113.9", RV_ADDRESS_SPECIAL},
        {"224.0.0.1", RV_ADDRESS_SPECIAL},
        {"240.0.0.1", RV_ADDRESS_SPECIAL},
        {"255.255.255.255", RV_ADDRESS_SPECIAL},
        {"2606:4700::1111", RV_ADDRESS_PUBLIC},
        {"::1", RV_ADDRESS_PRIVATE},
        {"fc00::1", RV_ADDRESS_PRIVATE},
        {"fdff::1", RV_ADDRESS_PRIVATE},
        {"::", RV_ADDRESS_SPECIAL},
        {"fd00:ec2::254", RV_ADDRESS_SPECIAL},
        {"fe80::1", RV_ADDRESS_SPECIAL},
        {"fec0::1", RV_ADDRESS_SPECIAL},
        {"ff02::1", RV_ADDRESS_SPECIAL},
        {"2001::1", RV_ADDRESS_SPECIAL},
        {"2001:db8::1", RV_ADDRESS_SPECIAL},
        {"::127.0.0.1", RV_ADDRESS_SPECIAL},
        {"64:ff9b:1::7f00:1", RV_ADDRESS_SPECIAL},
        {"4000::1", RV_ADDRESS_SPECIAL},
        {"::ffff:1.1.1.1", RV_ADDRESS_PUBLIC},
        {"::ffff:7f00:1", RV_ADDRESS_PRIVATE},
        {"::ffff:169.254.169.254", RV_ADDRESS_SPECIAL},
        {"64:ff9b::8.8.8.8", RV_ADDRESS_PUBLIC},
        {"64:ff9b::10.0.0.1", RV_ADDRESS_PRIVATE},
        {"2002:a9fe:a9fe::1", RV_ADDRESS_SPECIAL},
        {"2002:0a00:0001::", RV_ADDRESS_PRIVATE},
        {"2002:0808:0808::1", RV_ADDRESS_PUBLIC},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_address address;
        assert_true(rv_address_parse(rv_str_of(rows[i].text), &address));
        if (rv_address_kind(&address) != rows[i].kind)
            fail_msg("%s is of kind %d", rows[i].text, (int)rv_address_kind(&address));
    }
}

/* NULL: allowed; else a piece of the refusal. */
struct attempt {
    const char *url;
    const char *why;
};

static void attempts_check(const char *const *entries, const struct attempt *attempts, size_t count)
{
    char why[RV_EGRESS_WHY_BYTES];
    struct rv_egress *egress = rv_egress_new();
    for (; *entries != NULL; entries++)
        if (rv_egress_add(egress, rv_str_of(*entries), why) != RV_OK)
            fail_msg("%s", why);
    for (size_t i = 0; i < count; i++) {
        enum rv_err err = rv_egress_check_url(egress, rv_str_of(attempts[i].url), why);
        bool right = attempts[i].why == NULL ? err == RV_OK
                                             : err != RV_OK && strstr(why, attempts[i].why) != NULL;
        if (!right)
            fail_msg("%s: %s (%s)", attempts[i].url, rv_err_text(err), why);
    }
    rv_egress_free(egress);
}

#define CHECK(attempts, ...)                                                                       \
    attempts_check((const char *const[]){__VA_ARGS__, NULL}, (attempts),                           \
                   sizeof(attempts) / sizeof(attempts)[0])

static void an_empty_list_allows_nothing_and_names_the_flag(void **state)
{
    static const struct attempt attempts[] = {
        {"https://api.example.com/v1?key=secret", "--egress https://api.example.com"},
        {"https://API.Example.com:8443/", "--egress https://api.example.com:8443"},
        {"http://127.0.0.1:8080/", "--egress http://127.0.0.1:8080"},
        {"http://[::1]:80/", "--egress http://[::1]:80"},
    };
    (void)state;
    attempts_check((const char *const[]){NULL}, attempts, sizeof attempts / sizeof attempts[0]);
    char why[RV_EGRESS_WHY_BYTES];
    struct rv_egress *egress = rv_egress_new();
    assert_int_equal(rv_egress_check_url(egress, RV_STR("https://a.b/path?secret=1"), why),
                     RV_ERR_REFUSED);
    assert_null(strstr(why, "secret"));
    assert_null(strstr(why, "path"));
    rv_egress_free(egress);
}

static void an_entry_allows_its_origin_alone(void **state)
{
    static const struct attempt attempts[] = {
        {"https://api.example.com", NULL},
        {"https://api.example.com/any/path?and=query", NULL},
        {"HTTPS://API.EXAMPLE.COM:443/x#fragment", NULL},
        {"http://api.example.com/", "--egress"},
        {"http://api.example.com:443/", "--egress"},
        {"https://api.example.com:8443/", "--egress"},
        {"https://api.example.com.evil.com/", "--egress"},
        {"https://evil.com/api.example.com", "--egress"},
        {"https://xapi.example.com/", "--egress"},
        {"https://api.example.com./", "--egress"},
        {"https://example.com/", "--egress"},
        {"https://user@api.example.com/", "user name"},
        {"https://user:pass@api.example.com/", "user name"},
        {"https://api.example.com@evil.com/", "user name"},
        {"https://evil.com#@api.example.com/", "--egress"},
        {"https://evil.com?@api.example.com/", "--egress"},
        {"https://evil.com\\@api.example.com/", "backslash"},
        {"https://api.example.com\\@evil.com/", "backslash"},
        {"https://api.example.com /", "spaces"},
        {"https://api.example.com\r\nHost: evil.com", "control characters"},
        {"https://api%2eexample.com/", NULL}, /* the parser that connects reads it so too */
        {"https://api.example.com%00.evil.com/", ""},
        {"ftp://api.example.com/", "must begin with http:// or https://"},
        {"file:///etc/passwd", "must begin with http:// or https://"},
        {"gopher://api.example.com/", "must begin with http:// or https://"},
        {"unix:/run/docker.sock", "must begin with http:// or https://"},
        {"//api.example.com/", "must begin with http:// or https://"},
        {"api.example.com", "must begin with http:// or https://"},
        {"api.example.com:4318", "must begin with http:// or https://"},
        {"", "empty"},
        {"https://", ""},
        {"https:///etc", ""},
        {"https://api.example.com:0/", ""},
        {"https://api.example.com:99999/", ""},
    };
    (void)state;
    CHECK(attempts, "https://api.example.com");
}

static void a_path_allows_what_is_below_it(void **state)
{
    static const struct attempt attempts[] = {
        {"https://api.example.com/v1", NULL},
        {"https://api.example.com/v1/", NULL},
        {"https://api.example.com/v1/orders?x=/../", NULL},
        {"https://api.example.com/v1x", "--egress"},
        {"https://api.example.com/", "--egress"},
        {"https://api.example.com/v1/../admin", "--egress"},
        {"https://api.example.com/v1/./../admin", "--egress"},
        {"https://api.example.com/v1/%2e%2e/admin", "--egress"},
        {"https://api.example.com/v1/..%2fadmin", "--egress"},
        {"https://api.example.com/v1/..;/admin", "--egress"}, /* some servers cut it to `..` */
        {"https://api.example.com/v1/..;a=b/admin", "--egress"},
        {"https://api.example.com/v1/x/.;/..;", "--egress"},
        {"https://api.example.com/v1/..%3B/admin", "--egress"},
        {"https://api.example.com/v1/..%00/admin", "--egress"},
        {"https://api.example.com/v1/..a;b/.well-known;c/x;..", NULL},
        {"https://api.example.com/v1/...;/x", NULL},
        {"https://api.example.com/v1/%252e%252e/admin", "--egress"},
    };
    (void)state;
    CHECK(attempts, "https://api.example.com/v1");
}

static void a_star_allows_names_and_public_addresses_alone(void **state)
{
    static const struct attempt below[] = {
        {"https://badexample.com/", "--egress"}, {"https://very-badexample.com/", "--egress"},
        {"https://a.example.com/", NULL},        {"https://a.b.example.com/", NULL},
        {"https://example.com/", "--egress"},    {"https://aexample.com/", "--egress"},
        {"http://a.example.com/", "--egress"},   {"https://1.1.1.1/", "--egress"},
    };
    static const struct attempt all[] = {
        {"https://anything.example/", NULL},
        {"https://1.1.1.1/", NULL},
        {"https://127.0.0.1/", "--egress https://127.0.0.1:443"},
        {"https://127.0.0.1:443/", "--egress https://127.0.0.1:443"},
        {"https://127.1/", "127.0.0.1 is an address of this machine or network; the egress list"},
        {"https://[::1]/", "[::1] is an address of this machine or network; the egress list"},
        {"https://169.254.169.254/", "169.254.169.254 is a link-local"},
        {"http://anything.example/", "--egress http://anything.example"},
    };
    (void)state;
    CHECK(below, "https://*.example.com");
    CHECK(all, "https://*");
}

/* Every way to write an address that leads inside (attack A10). */
static const char *const inside[] = {
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://127.000.000.001/",
    "http://0/",
    "http://0.0.0.0/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://172.31.255.254/",
    "http://172.20.0.1/",
    "http://172.16.0.1/",
    "http://169.254.169.254/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://[fe80::1%25eth0]/",
    "http://127.0.0.1%2f@1.1.1.1/",
};

static void a10_every_way_to_write_an_inner_address_is_refused(void **state)
{
    (void)state;
    char why[RV_EGRESS_WHY_BYTES];
    struct rv_egress *egress = rv_egress_new();
    assert_int_equal(rv_egress_add(egress, RV_STR("http://*"), why), RV_OK);
    assert_int_equal(rv_egress_add(egress, RV_STR("http://127.0.0.1"), why), RV_OK);
    assert_int_equal(rv_egress_add(egress, RV_STR("http://169.254.169.254"), why), RV_OK);
    assert_int_equal(rv_egress_check_url(egress, RV_STR("http://1.1.1.1/"), why), RV_OK);
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        if (rv_egress_check_url(egress, rv_str_of(inside[i]), why) == RV_OK)
            fail_msg("%s is let through", inside[i]);
    rv_egress_free(egress);
}

static void host_and_port_written_out_lead_inside(void **state)
{
    static const struct attempt attempts[] = {
        {"http://127.0.0.1:8080/x", NULL},
        {"http://2130706433:8080/", NULL},
        {"http://127.0.0.1:8081/", "--egress http://127.0.0.1:8081"},
        {"http://127.0.0.2:8080/", "--egress http://127.0.0.2:8080"},
        {"http://172.17.2.3/", NULL},
        {"http://169.254.169.254/latest", NULL},
        {"http://[::1]:7/", NULL},
        {"http://[0:0::1]:7/", NULL},
        {"http://[::ffff:127.0.0.1]:8080/", "--egress"},
    };
    (void)state;
    CHECK(attempts, "http://127.0.0.1:8080", "http://172.17.2.3:80", "http://169.254.169.254:80",
          "http://[::1]:7");
}

static void names_reach_as_far_as_their_entry_says(void **state)
{
    static const struct {
        const char *entry;
        const char *url;
        enum rv_egress_reach reach;
    } rows[] = {
        {"http://db.example", "http://db.example/", RV_REACH_NAMED},
        {"http://db.example:80", "http://db.example/", RV_REACH_HOST},
        {"http://db.example:80/v1", "http://db.example/v1", RV_REACH_HOST},
        {"http://*.example:80", "http://db.example/", RV_REACH_PUBLIC},
        {"http://*:80", "http://db.example/", RV_REACH_PUBLIC},
        {"http://172.17.0.1:80", "http://172.17.0.1/", RV_REACH_ADDRESS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[RV_EGRESS_WHY_BYTES];
        struct rv_target target = {.url = NULL};
        struct rv_egress *egress = rv_egress_new();
        enum rv_egress_reach reach = RV_REACH_PUBLIC;
        assert_int_equal(rv_egress_add(egress, rv_str_of(rows[i].entry), why), RV_OK);
        assert_int_equal(rv_target_parse(&target, rv_str_of(rows[i].url), why), RV_OK);
        assert_int_equal(rv_egress_check(egress, &target, &reach, why), RV_OK);
        if (reach != rows[i].reach)
            fail_msg("%s reaches %d", rows[i].entry, (int)reach);
        rv_target_done(&target);
        rv_egress_free(egress);
    }
}

static void a_special_address_is_never_reached_by_a_name(void **state)
{
    struct rv_address metadata, here, internet;
    (void)state;
    assert_true(rv_address_parse(RV_STR("169.254.169.254"), &metadata));
    assert_true(rv_address_parse(RV_STR("127.0.0.1"), &here));
    assert_true(rv_address_parse(RV_STR("1.1.1.1"), &internet));
    assert_false(rv_egress_reaches(RV_REACH_PUBLIC, &metadata));
    assert_false(rv_egress_reaches(RV_REACH_HOST, &metadata));
    assert_true(rv_egress_reaches(RV_REACH_ADDRESS, &metadata));
    assert_false(rv_egress_reaches(RV_REACH_PUBLIC, &here));
    assert_true(rv_egress_reaches(RV_REACH_HOST, &here));
    assert_true(rv_egress_reaches(RV_REACH_PUBLIC, &internet));
}

static void entries_that_are_none_are_refused_with_the_cure(void **state)
{
    static const char *const bad[] = {"",
                                      "api.example.com",
                                      "ftp://api.example.com",
                                      "https://",
                                      "https://user@api.example.com",
                                      "https://api.example.com?x=1",
                                      "https://*x.example.com",
                                      "https://**",
                                      "https://*.",
                                      "https://*.127.0.0.1",
                                      "https://a.*.com",
                                      "https://api.example.com:0",
                                      "https://*@evil"};
    (void)state;
    struct rv_egress *egress = rv_egress_new();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char why[RV_EGRESS_WHY_BYTES];
        enum rv_err err = rv_egress_add(egress, rv_str_of(bad[i]), why);
        if (err != RV_ERR_INVALID || strstr(why, "write the entry as") == NULL)
            fail_msg("\"%s\": %s %s", bad[i], rv_err_text(err), why);
    }
    rv_egress_free(egress);
}

static void a_redirect_moves_the_target(void **state)
{
    static const struct {
        const char *location;
        const char *origin;
        const char *path;
    } rows[] = {
        {"/next", "https://a.example", "/next"},
        {"next", "https://a.example", "/v1/next"},
        {"../x", "https://a.example", "/x"},
        {"//b.example/y", "https://b.example", "/y"},
        {"http://127.0.0.1:9/", "http://127.0.0.1:9", "/"},
        {"http://0x7f.1:9/", "http://127.0.0.1:9", "/"},
    };
    static const char *const bad[] = {"file:///etc/passwd", "gopher://a/", "http://u@a/",
                                      "http://a b/", "javascript:alert(1)"};
    char why[RV_TARGET_WHY_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char origin[300];
        struct rv_target target = {.url = NULL};
        assert_int_equal(rv_target_parse(&target, RV_STR("https://a.example/v1/old"), why), RV_OK);
        assert_int_equal(rv_target_move(&target, rv_str_of(rows[i].location), why), RV_OK);
        rv_target_origin(&target, origin, sizeof origin);
        assert_string_equal(origin, rows[i].origin);
        assert_string_equal(target.path, rows[i].path);
        rv_target_done(&target);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rv_target target = {.url = NULL};
        assert_int_equal(rv_target_parse(&target, RV_STR("https://a.example/v1/old"), why), RV_OK);
        if (rv_target_move(&target, rv_str_of(bad[i]), why) != RV_ERR_INVALID)
            fail_msg("%s is followed", bad[i]);
        assert_string_equal(target.path, "/v1/old");
        rv_target_done(&target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_lead_where_the_registries_say),
        cmocka_unit_test(an_empty_list_allows_nothing_and_names_the_flag),
        cmocka_unit_test(an_entry_allows_its_origin_alone),
        cmocka_unit_test(a_path_allows_what_is_below_it),
        cmocka_unit_test(a_star_allows_names_and_public_addresses_alone),
        cmocka_unit_test(a10_every_way_to_write_an_inner_address_is_refused),
        cmocka_unit_test(host_and_port_written_out_lead_inside),
        cmocka_unit_test(names_reach_as_far_as_their_entry_says),
        cmocka_unit_test(a_special_address_is_never_reached_by_a_name),
        cmocka_unit_test(entries_that_are_none_are_refused_with_the_cure),
        cmocka_unit_test(a_redirect_moves_the_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
