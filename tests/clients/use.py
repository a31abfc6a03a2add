"""Calls one metered route, and reads a receipt, through the client that openapi-python-client generated: use.py BASE KEY."""

import json
import sys

from generated_client import AuthenticatedClient
from generated_client.api.account import balance, receipt_pdf, receipts
from generated_client.api.metered import get_mpp_eth_price_by_block_number as eth_price

base, key = sys.argv[1:]
client = AuthenticatedClient(base_url=base, token=key)
with client:
    response = eth_price.sync_detailed(19_000_001, client=client)
    account = balance.sync(client=client)
    number = receipts.sync(client=client).receipts[0].number
    file = receipt_pdf.sync(client=client, number=number).payload.read()
    assert file.startswith(b"%PDF"), file[:40]
print(
    json.dumps(
        {
            "status": response.status_code,
            "block": response.parsed.block_number,
            "price": response.parsed.price_usd,
            "charged": response.headers["x-bds-credit-charged"],
            "balance": account.credit_balance,
        }
    )
)
