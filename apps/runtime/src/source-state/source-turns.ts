import type { Transaction } from '#database';

/**
 * Waits until no other transaction changes the timers, the retried runs or the state of these sources. The transactions that store runs lock rows of many
 * sources, in the order in which runs end and in which they set their keys: without turns, they would deadlock with each other and with changes of the sources.
 */
export async function takeTurns(transaction: Transaction, sourceIds: Iterable<string>): Promise<void> {
  const ids = [...new Set(sourceIds)].sort();
  if (ids.length === 0) return;
  await transaction.query({
    name: 'source-turns',
    text: 'SELECT pg_advisory_xact_lock(hashtextextended(id, 2)) FROM unnest($1::text[]) AS id',
    values: [ids],
  });
}
