/* Hashes: every byte, the length and the key count. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct rv_hash_key key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};

/* The first vector that goes around with SipHash-1-3: no bytes, under the key 00 01 .. 0f. */
static void the_known_vector_comes_out(void **state)
{
    (void)state;
    assert_true(rv_hash(key, RV_STR("")) == UINT64_C(0xabac0158050fc4dc));
}

static void hashes_of_different_texts_differ(void **state)
{
    (void)state;
    char text[64] = {0};
    uint64_t seen[64];
    for (size_t len = 0; len < 64; len++) {
        seen[len] = rv_hash(key, (struct rv_str){text, len});
        assert_true(seen[len] == rv_hash(key, (struct rv_str){text, len}));
        for (size_t i = 0; i < len; i++) {
            assert_true(seen[i] != seen[len]);
            text[i] = 1;
            assert_true(rv_hash(key, (struct rv_str){text, len}) != seen[len]);
            text[i] = 0;
        }
    }
    assert_true(rv_hash(key, RV_STR_NONE) == rv_hash(key, RV_STR("")));
}

static void the_key_decides_the_hash(void **state)
{
    (void)state;
    struct rv_hash_key other = key;
    other.k1 ^= 1;
    assert_true(rv_hash(key, RV_STR("task")) != rv_hash(other, RV_STR("task")));
    other = key;
    other.k0 ^= UINT64_C(1) << 63;
    assert_true(rv_hash(key, RV_STR("task")) != rv_hash(other, RV_STR("task")));
}

/* Each bit of the input turns about half of the output. */
static void one_bit_moves_half_of_them(void **state)
{
    (void)state;
    int turned = 0;
    int turned_by_int = 0;
    for (int bit = 0; bit < 64; bit++) {
        uint64_t a = UINT64_C(0x123456789abcdef0);
        uint64_t b = a ^ UINT64_C(1) << bit;
        struct rv_str text_a = {(const char *)&a, 8};
        struct rv_str text_b = {(const char *)&b, 8};
        turned += __builtin_popcountll(rv_hash(key, text_a) ^ rv_hash(key, text_b));
        turned_by_int += __builtin_popcountll(rv_hash_int(a) ^ rv_hash_int(b));
    }
    assert_in_range(turned, 64 * 29, 64 * 35);
    assert_in_range(turned_by_int, 64 * 28, 64 * 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_known_vector_comes_out),
        cmocka_unit_test(hashes_of_different_texts_differ),
        cmocka_unit_test(the_key_decides_the_hash),
        cmocka_unit_test(one_bit_moves_half_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
