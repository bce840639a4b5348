import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  type DeliveryAttempt,
  DeliveryReference,
  ListDeliveries,
  listDeliveries,
  type Page,
  RecoverDeliveries,
  recoverDeliveries,
  retryDelivery,
  testWebhook,
  type WebhookDelivery,
  WebhookReference,
} from '#contracts';
import { Answers } from '#messaging';
import { DeliveriesService } from './history/deliveries.service.js';
import { WebhookTest } from './direct/webhook-test.js';

@Controller()
export class DeliveriesController {
  constructor(
    private readonly deliveries: DeliveriesService,
    private readonly webhookTest: WebhookTest,
  ) {}

  @Answers(listDeliveries)
  list(@Payload() request: ListDeliveries): Promise<Page<WebhookDelivery>> {
    return this.deliveries.list(request);
  }

  @Answers(retryDelivery)
  retry(@Payload() command: DeliveryReference): Promise<WebhookDelivery> {
    return this.deliveries.retry(command);
  }

  @Answers(recoverDeliveries)
  recover(@Payload() command: RecoverDeliveries): Promise<{ count: number }> {
    return this.deliveries.recover(command);
  }

  @Answers(testWebhook)
  test(@Payload() reference: WebhookReference): Promise<DeliveryAttempt> {
    return this.webhookTest.run(reference);
  }
}
