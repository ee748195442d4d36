/* Signatures of webhooks, against a vector of the Standard Webhooks specification, and the file of
 * secrets. */
#include "notify/webhook/sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define OTHER "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define SIGNED "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

static struct rv_secrets *secrets_of(const char *text)
{
    struct rv_secrets *secrets = NULL;
    char why[RV_SECRETS_WHY_BYTES] = "";
    if (rv_secrets_parse(rv_str_of(text), &secrets, why) != RV_OK)
        fail_msg("%s", why);
    return secrets;
}

static void assert_signature(const char *secrets_text, const char *destination, const char *wanted)
{
    struct rv_secrets *secrets = secrets_of(secrets_text);
    struct rv_buf out;
    rv_buf_init(&out, 1024);
    bool known = rv_secrets_sign(secrets, rv_str_of(destination),
                                 RV_STR("msg_p5jXN8AQM9LWM0D4loKWxJek"), 1614265330,
                                 RV_STR("{\"test\": 2432232314}"), &out);
    assert_int_equal(known, wanted != NULL);
    assert_int_equal(out.failed, RV_OK);
    rv_buf_add_char(&out, '\0');
    assert_string_equal(out.at, wanted != NULL ? wanted : "");
    rv_buf_done(&out);
    rv_secrets_free(secrets);
}

static void a_signature_is_that_of_the_specification(void **state)
{
    (void)state;
    assert_signature(SECRET, "https://a", SIGNED);
    assert_signature("# why\n\n  " SECRET " \r\n", "https://a", SIGNED);
}

static void several_secrets_sign_side_by_side(void **state)
{
    (void)state;
    struct rv_secrets *secrets = secrets_of(OTHER "\n" SECRET "\n");
    struct rv_buf out;
    rv_buf_init(&out, 1024);
    assert_true(rv_secrets_sign(secrets, RV_STR("https://a"),
                                RV_STR("msg_p5jXN8AQM9LWM0D4loKWxJek"), 1614265330,
                                RV_STR("{\"test\": 2432232314}"), &out));
    rv_buf_add_char(&out, '\0');
    assert_non_null(strstr(out.at, " " SIGNED));
    assert_int_equal(strlen(out.at), 2 * strlen(SIGNED) + 1);
    rv_buf_done(&out);
    rv_secrets_free(secrets);
}

/* Who has one of its own is not signed with what others know. */
static void a_destination_may_have_its_own(void **state)
{
    (void)state;
    static const char *const text = OTHER "\nhttps://a " SECRET "\n";
    assert_signature(text, "https://a", SIGNED);
    assert_signature("https://a " SECRET "\n", "https://b", NULL);
    assert_signature("https://a " OTHER "\n" SECRET "\n", "https://b", SIGNED);
}

static void what_is_no_secret_is_refused_with_its_line(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"", "the file contains no secret"},
        {"# nothing\n", "the file contains no secret"},
        {SECRET "\nhello\n", "line 2"},
        {"whsec_\n", "16 to 64 bytes"},
        {"whsec_AAAA\n", "16 to 64 bytes"},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS\n", "16 to 64 bytes"},
        {"whsec_****9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "16 to 64 bytes"},
        {"https://a hello\n", "whsec_"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rv_secrets *secrets = NULL;
        char why[RV_SECRETS_WHY_BYTES] = "";
        assert_int_equal(rv_secrets_parse(rv_str_of(wrong[i][0]), &secrets, why), RV_ERR_INVALID);
        if (strstr(why, wrong[i][1]) == NULL)
            fail_msg("%s: %s", wrong[i][0], why);
    }
}

static void keys_have_their_bounds(void **state)
{
    (void)state;
    char text[256];
    static const struct {
        size_t chars, padding;
        bool good;
    } cases[] = {{24, 2, true},  /* 16 bytes */
                 {20, 0, false}, /* 15 */
                 {88, 2, true},  /* 64 */
                 {88, 1, false}, /* 65 */
                 {92, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rv_secrets *secrets = NULL;
        char why[RV_SECRETS_WHY_BYTES];
        size_t plain = cases[i].chars - cases[i].padding;
        int at = snprintf(text, sizeof text, "whsec_");
        memset(text + at, 'A', plain);
        memset(text + at + plain, '=', cases[i].padding);
        text[(size_t)at + cases[i].chars] = '\0';
        enum rv_err err = rv_secrets_parse(rv_str_of(text), &secrets, why);
        assert_int_equal(err == RV_OK, cases[i].good);
        rv_secrets_free(secrets);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_is_that_of_the_specification),
        cmocka_unit_test(several_secrets_sign_side_by_side),
        cmocka_unit_test(a_destination_may_have_its_own),
        cmocka_unit_test(what_is_no_secret_is_refused_with_its_line),
        cmocka_unit_test(keys_have_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
