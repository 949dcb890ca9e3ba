/** Accounts and their ledgers. */
import type {
  AccountInfo, DepositRequest, DepositResponse, LedgerEntry, List, ListAccountsQuery, NewAccount, ShowLedgerQuery,
} from "../openapi.ts";
import { follow } from "../pages.ts";
import type { Transport } from "../transport.ts";

export class Accounts {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Opens an account; an open one of the same name is the answer. */
  create(account: NewAccount): Promise<AccountInfo> {
    return this.#transport.call("POST /api/v1/accounts", { body: account, isRepeatable: true });
  }

  get(id: string): Promise<AccountInfo> {
    return this.#transport.call("GET /api/v1/accounts/{id}", { path: { id } });
  }

  /** A page of accounts, by id. */
  list(query: ListAccountsQuery = {}): Promise<List<AccountInfo>> {
    return this.#transport.call("GET /api/v1/accounts", { query });
  }

  /** All accounts, page after page. */
  all(): AsyncGenerator<AccountInfo, void, undefined> {
    return follow((cursor) => this.list({ cursor, limit: 1_000 }));
  }

  /** Pays an amount in; the same key pays once. */
  deposit(id: string, deposit: DepositRequest): Promise<DepositResponse> {
    const request = { path: { id }, body: deposit, isRepeatable: true };
    return this.#transport.call("POST /api/v1/accounts/{id}/deposit", request);
  }

  /** A page of the movements of an account. */
  ledger(id: string, query: ShowLedgerQuery = {}): Promise<List<LedgerEntry>> {
    return this.#transport.call("GET /api/v1/accounts/{id}/ledger", { path: { id }, query });
  }
}
