import type { UserId } from '#contracts';
import type { Database } from '#database';
import type { AccountsRepository } from '../accounts/accounts.repository.js';
import { deleteNoticesOf } from '../error-mail/error-notices.repository.js';
import { deleteRequestsOf } from '../idempotency/idempotency.repository.js';
import { deleteUsageOf } from '../usage/usage.repository.js';

/** Deletes an account, and all that this database has of it, in one transaction. Returns the number of its keys. */
export function deleteAccountRows(database: Database, accounts: AccountsRepository, id: UserId): Promise<number> {
  return database.transaction(async (transaction) => {
    // a day of requests with an Idempotency-Key can be millions of rows
    transaction.takeLong();
    await deleteUsageOf(transaction, id);
    await deleteRequestsOf(transaction, id);
    await deleteNoticesOf(transaction, id);
    return accounts.remove(transaction, id);
  });
}
