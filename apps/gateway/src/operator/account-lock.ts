import { SluiceError, Unavailable } from '#contracts';
import { type Database, END_WHEN_IDLE, keepSession } from '#database';

const LOCK = `SELECT pg_try_advisory_lock(hashtextextended('operator ' || $1, 0)) AS is_taken, ${END_WHEN_IDLE}`;

/**
 * Runs `work` while no other command has the lock of the account. The lock belongs to a connection: PostgreSQL releases it when the process ends, or is
 * frozen for 20 s. Throws a conflict if another command has the lock, and Unavailable if the connection is lost before `work` has ended.
 */
export async function withAccountLock<T>(database: Database, accountId: string, work: () => Promise<T>): Promise<T> {
  const client = await database.connect();
  const lost = Promise.withResolvers<never>();
  // it may be rejected before it is awaited
  lost.promise.catch(() => {});
  client.once('error', () => lost.reject(new Unavailable('PostgreSQL has closed the connection of the command')));
  const letGo = keepSession((text) => client.query(text));
  try {
    const { rows } = await client.query<{ is_taken: boolean }>(LOCK, [accountId]);
    if (!rows[0]?.is_taken) throw new SluiceError('conflict', 'another command for this account is in progress');
    return await Promise.race([work(), lost.promise]);
  } finally {
    void letGo();
    client.release(true);
  }
}
