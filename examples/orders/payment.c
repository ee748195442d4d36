/* The payment service: charges an order, and refunds a charge. */
#include "service.h"

int main(int argc, char **argv)
{
    static const struct shop_business business = {.name = "payment",
                                                  .verb = "charge",
                                                  .undo_verb = "refund",
                                                  .decline = "payment-declined",
                                                  .undo_decline = "refund-refused"};
    return shop_service_main(&business, argc, argv);
}
