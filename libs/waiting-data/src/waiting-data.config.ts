import { Config, integer } from '#config';

export class WaitingDataConfig extends Config({
  maxWaitingBytes: integer('SLUICE_MAX_WAITING_BYTES', {
    fallback: 10 * 1024 ** 3,
    description:
      'Largest size of the deliveries of one account that wait or have failed, and of its waiting runs and emits, in bytes. ' +
      'While either has reached this many bytes, publishing and the endpoints of the account return 429, its replays pause, and its timers do not tick. 0: unlimited.',
  }),
}) {}
