import { Unavailable } from '#contracts';
import { within } from '#service';

/** How long a request waits for the database of the gateway: as long as for a service. */
const WITHIN_MS = 10_000;

/** The result of statements that a request needs. Throws Unavailable if the database does not respond in time; the statements may take effect later. */
export const inTime = <T>(work: Promise<T>, onLate = () => {}): Promise<T> =>
  within(WITHIN_MS, work, () => {
    onLate();
    return new Unavailable('PostgreSQL does not respond', 'the database does not respond');
  });

/** Waits for statements on which the response does not depend. If the database does not respond in time, they continue behind the response. */
export async function inTimeOrLater(work: Promise<void>, onLateFailure: (error: unknown) => void): Promise<void> {
  let isLate = false;
  await inTime(work, () => (isLate = true)).catch((error: unknown) => {
    if (!isLate) throw error;
    work.catch(onLateFailure);
  });
}
