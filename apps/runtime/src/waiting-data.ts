import type { WaitingDataOptions } from '#waiting-data';

export const WAITING_DATA: WaitingDataOptions = {
  tables: ['queued_run', 'retried_run', 'waiting_emit'],
  what: 'runs and delayed events of this account',
  remedy: 'wait until its sources have run, or delete sources or events on $in',
};
