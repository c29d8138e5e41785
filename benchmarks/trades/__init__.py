"""Ten systems from ten trades: each as a ``System``, and once more in plain Python, which shares no code with it."""

from trades import (
    bakery,
    bike_shop,
    call_centre,
    car_sharing,
    chemotherapy,
    dairy,
    data_centre,
    lifts,
    reservoir,
    seed_bank,
)
from trades.trade import Trade

TRADES: dict[str, Trade] = {
    module.TRADE.name: module.TRADE
    for module in (
        bakery, car_sharing, call_centre, reservoir, chemotherapy,
        bike_shop, data_centre, seed_bank, lifts, dairy,
    )
}  # fmt: skip
