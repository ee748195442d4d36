/* The shipping service: ships an order, and calls a shipment back. */
#include "service.h"

int main(int argc, char **argv)
{
    static const struct shop_business business = {.name = "shipping",
                                                  .verb = "ship",
                                                  .undo_verb = "cancel",
                                                  .decline = "address-unknown",
                                                  .undo_decline = "shipped-for-good"};
    return shop_service_main(&business, argc, argv);
}
