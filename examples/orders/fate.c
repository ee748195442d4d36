#include "fate.h"

#include <stdlib.h>
#include <string.h>

enum { TROUBLES_MAX = 2, ALWAYS = 1000000 };

/* The first `times` requests with this verb meet the fault. */
struct trouble {
    const char *verb;
    enum shop_fault fault;
    uint32_t times;
};

struct card {
    const char *story;
    struct trouble troubles[TROUBLES_MAX];
};

/* order.yaml gives a step two attempts, a cool-down, and two more: so 3 times means a cool-down and
 * then success, and always means that the order is undone. */
static const struct card deck[SHOP_DECK_CARDS] = {
    {"nothing goes wrong", {{0}}},
    {"nothing goes wrong", {{0}}},
    {"nothing goes wrong", {{0}}},
    {"nothing goes wrong", {{0}}},
    {"nothing goes wrong", {{0}}},
    {"nothing goes wrong", {{0}}},
    {"nothing goes wrong", {{0}}},
    {"inventory's first answer is lost", {{"reserve", SHOP_FAULT_DROP, 1}}},
    {"payment's first answer is lost", {{"charge", SHOP_FAULT_DROP, 1}}},
    {"payment hangs once", {{"charge", SHOP_FAULT_HANG, 1}}},
    {"shipping works but says nothing, once", {{"ship", SHOP_FAULT_MUTE, 1}}},
    {"payment hangs three times", {{"charge", SHOP_FAULT_HANG, 3}}},
    {"out of stock", {{"reserve", SHOP_FAULT_DECLINE, ALWAYS}}},
    {"payment is declined", {{"charge", SHOP_FAULT_DECLINE, ALWAYS}}},
    {"payment is declined, and stock comes back slowly",
     {{"charge", SHOP_FAULT_DECLINE, ALWAYS}, {"release", SHOP_FAULT_HANG, 1}}},
    {"the address is unknown", {{"ship", SHOP_FAULT_DECLINE, ALWAYS}}},
    {"payment charges, and never once says so", {{"charge", SHOP_FAULT_DROP, ALWAYS}}},
    {"shipping hangs every time", {{"ship", SHOP_FAULT_HANG, ALWAYS}}},
    {"payment is declined, and the stock cannot be taken back",
     {{"charge", SHOP_FAULT_DECLINE, ALWAYS}, {"release", SHOP_FAULT_DECLINE, ALWAYS}}},
    {"the address is unknown, and the refund is refused",
     {{"ship", SHOP_FAULT_DECLINE, ALWAYS}, {"refund", SHOP_FAULT_DECLINE, ALWAYS}}},
};

/* One step of splitmix64 (Steele, Lea, Flood): a good mix of two numbers. */
uint64_t shop_draw(uint64_t seed, uint64_t what)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + what * UINT64_C(0xd1b54a32d192ed03);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The card in this place of the pack that belongs to these 20 orders (Fisher-Yates). */
static const struct card *deck_deal(uint64_t seed, uint64_t pack, uint32_t place)
{
    uint32_t cards[SHOP_DECK_CARDS];
    for (uint32_t i = 0; i < SHOP_DECK_CARDS; i++)
        cards[i] = i;
    for (uint32_t i = SHOP_DECK_CARDS - 1; i > 0; i--) {
        uint32_t other = (uint32_t)(shop_draw(seed, pack * SHOP_DECK_CARDS + i) % (i + 1));
        uint32_t card = cards[i];
        cards[i] = cards[other];
        cards[other] = card;
    }
    return &deck[cards[place]];
}

/* 17 of "order-0017"; 0 if it ends otherwise. */
static uint64_t order_number(const char *order)
{
    const char *digits = order + strlen(order);
    while (digits > order && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    return strtoull(digits, NULL, 10);
}

static const struct card *fate_card(uint64_t seed, const char *order)
{
    uint64_t number = order_number(order);
    if (seed == 0 || number == 0)
        return &deck[0];
    return deck_deal(seed, (number - 1) / SHOP_DECK_CARDS,
                     (uint32_t)((number - 1) % SHOP_DECK_CARDS));
}

enum shop_fault shop_fate(uint64_t seed, const char *order, const char *verb, uint32_t nth)
{
    const struct card *card = fate_card(seed, order);
    for (unsigned i = 0; i < TROUBLES_MAX; i++) {
        const struct trouble *trouble = &card->troubles[i];
        if (trouble->verb != NULL && !strcmp(trouble->verb, verb) && nth <= trouble->times)
            return trouble->fault;
    }
    return SHOP_FAULT_NONE;
}

long shop_hang_ms(uint64_t seed, const char *order, uint32_t nth, long base_ms)
{
    return base_ms * (long)(1 + shop_draw(seed, order_number(order) * 16 + nth) % 4);
}

const char *shop_story(uint64_t seed, const char *order)
{
    return fate_card(seed, order)->story;
}
