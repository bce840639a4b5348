import { Injectable } from '@nestjs/common';
import { type DeliveryAttempt, ksuid, NotFound, type UserId, type WebhookReference } from '#contracts';
import { LimitPerKey } from '#limits';
import { WebhooksRepository } from '../../webhooks/webhooks.repository.js';
import { Attempts, FIRST } from '../attempt/attempts.js';
import type { Delivery } from '../delivery.js';
import { Targets } from '../receivers/targets.js';

/** Per account: each test occupies a request to this service until the receiver responds. */
const AT_ONCE = 4;

/** Delivers a sample event to a webhook: one attempt, which is not stored. */
@Injectable()
export class WebhookTest {
  private readonly limit = new LimitPerKey<UserId>(AT_ONCE);

  constructor(
    private readonly webhooks: WebhooksRepository,
    private readonly targets: Targets,
    private readonly attempts: Attempts,
  ) {}

  async run({ owner_id, id }: WebhookReference): Promise<DeliveryAttempt> {
    const target = (await this.webhooks.find(owner_id, id)) && (await this.targets.load(id));
    if (!target) throw new NotFound('webhook', id);
    const test = () => this.attempts.makeUncounted(target, sampleFor(target), FIRST);
    return (await this.limit.run(owner_id, `at most ${AT_ONCE} webhooks of an account are tested at a time`, test)).attempt;
  }
}

/** An event without an emitter. */
const sampleFor = ({ id }: { id: Delivery['webhookId'] }): Delivery => ({
  webhookId: id,
  place: { ms: Date.now(), seq: 0 },
  emitterId: 'dc_test',
  stream: '',
  emitId: ksuid(),
  json: Buffer.from(JSON.stringify({ test: true, webhook_id: id })),
});
