import type { WaitingDataOptions } from '#waiting-data';

export const WAITING_DATA: WaitingDataOptions = {
  tables: ['parked_delivery', 'postponed_event'],
  // a parked delivery names its webhook; one that is deleted has none left
  accountOf: (holder) => `coalesce((SELECT owner_id FROM webhook WHERE id = ${holder}), ${holder})`,
  what: 'deliveries of this account',
  remedy: 'repair the receivers of its webhooks that fail, or delete webhooks or events',
};
