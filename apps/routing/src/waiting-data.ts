import type { WaitingDataOptions } from '#waiting-data';

export const WAITING_DATA: WaitingDataOptions = {
  tables: ['parked_delivery', 'postponed_event'],
  // a parked delivery names its webhook, which may be deleted
  accountOf: (holder) =>
    `coalesce((SELECT owner_id FROM webhook WHERE id = ${holder}), (SELECT owner_id FROM deleted_webhook WHERE webhook_id = ${holder}), ${holder})`,
  what: 'deliveries of this account',
  remedy: 'repair the receivers of its webhooks that fail, or delete webhooks or events',
};
