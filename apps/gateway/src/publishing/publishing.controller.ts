import { applyDecorators, Controller, HttpCode, Param, Post, Req } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiHeader, ApiOperation, ApiParam, ApiQuery } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import type { UserId } from '#contracts';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsAccepted, Documented, EVENT_NAME, Problems } from '../http/api-docs.js';
import { BATCH_TYPE, EVENT_BODY, STRUCTURED_TYPE } from '../http/content-types.js';
import { REPEATABLE } from '../idempotency/idempotent-posts.js';
import { UNQUEUED } from '../limits/request-queues.js';
import { type Acknowledged, PublishingService } from './publishing.service.js';

const CLOUD_EVENT = {
  title: 'CloudEvent',
  type: 'object',
  required: ['specversion', 'id', 'source', 'type'],
  properties: {
    specversion: { type: 'string', enum: ['1.0'] },
    id: { type: 'string', description: 'The emit id.' },
    source: { type: 'string' },
    type: { type: 'string', description: 'Also the stream, where it can be one and `sluicestream` is absent.' },
    sluicestream: { type: 'string', description: 'The stream.' },
    time: { type: 'string', format: 'date-time' },
    datacontenttype: { type: 'string' },
    data: { description: 'The event: any JSON value.' },
    data_base64: { type: 'string', description: 'Instead of `data`: the event is this string.' },
  },
  additionalProperties: true,
  example: { specversion: '1.0', id: '17', source: '/shop', type: 'order.created', data: { order: 17 } },
};

/**
 * `allOf` changes nothing about what it allows: openapi-python-client chooses the content type by the class of the body, and makes a class only of such
 * a schema, not of one for any value or for a list. It has no title: openapi-generator would refer to a class of that name, and not generate it.
 */
const ANY_EVENT = { description: 'The event: any JSON value.', allOf: [{}], example: { order: 17 } };
const BATCH = { title: 'CloudEventBatch', allOf: [{ type: 'array', maxItems: 500, items: CLOUD_EVENT }], example: [CLOUD_EVENT.example] };

const BODY = {
  required: true,
  description: 'At most 1 MiB of JSON per event; 500 events, 10 000 CloudEvents attributes or 2 MiB per request.',
  content: {
    'application/json': {
      schema: ANY_EVENT,
      examples: {
        object: { summary: 'an object', value: ANY_EVENT.example },
        text: { summary: 'any other JSON value', value: 'shipped' },
      },
    },
    [STRUCTURED_TYPE]: { schema: CLOUD_EVENT, examples: { event: { summary: 'a CloudEvent', value: CLOUD_EVENT.example } } },
    [BATCH_TYPE]: { schema: BATCH, examples: { batch: { summary: 'several CloudEvents', value: BATCH.example } } },
  },
};

const attribute = (name: string, description: string): MethodDecorator =>
  ApiHeader({ name: `ce-${name}`, required: false, description, schema: { type: 'string' } });

const parameter = (name: string, description: string, constraints: object): MethodDecorator =>
  ApiQuery({ name, required: false, description, schema: { type: 'string', ...constraints } });

const Publishes = (operationId: string, summary: string): MethodDecorator =>
  applyDecorators(
    HttpCode(202),
    RouteConfig({ ...EVENT_BODY, ...UNQUEUED, ...REPEATABLE }),
    ApiParam({ name: 'id', schema: { type: 'string' } }),
    ApiOperation({
      operationId,
      summary,
      description:
        'Events go to the topic `events` without running any code; the emitter may be inactive. A batch is published as a whole or not at all. Repeating an emit id on the same stream is harmless: an event that is kept is not stored again, and its deliveries have the same `webhook-id`. With an `Idempotency-Key`, a repeated request has the same emit ids, also after a 503. With `application/json`, headers `ce-…` are CloudEvents attributes (binary mode, percent-encoded).',
      requestBody: BODY,
    }),
    // parsed by hand: validating a class would cost as much as the rest of a request
    parameter(
      'event_name',
      'The stream: `default`, `$errors`, `$logs` or a custom name. Wins over the attributes `sluicestream` and `type`.',
      EVENT_NAME,
    ),
    parameter('id', 'The emit id, at most 256 characters. Wins over the attribute `id`; not for a batch of several events.', {
      maxLength: 256,
    }),
    attribute('id', 'The emit id.'),
    attribute('source', 'Reaches webhooks unchanged, like every attribute. It is not a part of the identity of an event.'),
    attribute('type', 'Also the stream, where it can be one and `ce-sluicestream` is absent.'),
    attribute('sluicestream', 'The stream.'),
    attribute('time', 'RFC 3339.'),
    attribute('summary', 'One line for lists. All attributes take at most 8 KiB together, as headers.'),
    attribute('itemid', "The emitter's id of the item, at most 4096 characters, within the 8 KiB of all attributes."),
    attribute('hops', 'How many sources and workflows the event came through: past 16, it triggers no more of them.'),
    RespondsAccepted('PublishedEvents', 'Kafka has acknowledged every event.', {
      type: 'array',
      items: { title: 'PublishedEvent', type: 'object', required: ['emit_id'], properties: { emit_id: { type: 'string' } } },
    }),
    Problems(400, 404, 409, 413, 415, 422),
  );

@Documented('events')
@Controller('v1')
export class PublishingController {
  constructor(private readonly publishing: PublishingService) {}

  @Post('sources/:id/events')
  @Publishes('publishSourceEvents', 'Publish events in the name of a source')
  toSource(@OwnerId() owner: UserId, @Param('id') id: string, @Req() request: FastifyRequest): Promise<{ data: Acknowledged[] }> {
    return this.publish(owner, 'source', id, request);
  }

  @Post('workflows/:id/events')
  @Publishes('publishWorkflowEvents', 'Publish events in the name of a workflow')
  toWorkflow(@OwnerId() owner: UserId, @Param('id') id: string, @Req() request: FastifyRequest): Promise<{ data: Acknowledged[] }> {
    return this.publish(owner, 'workflow', id, request);
  }

  private async publish(
    owner: UserId,
    kind: 'source' | 'workflow',
    id: string,
    { headers, raw, body, query, heldKey, repeats }: FastifyRequest,
  ): Promise<{ data: Acknowledged[] }> {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
    const { rawHeaders } = raw;
    const request = { headers, rawHeaders, body: bytes, query: query as object, heldKey: heldKey ?? repeats };
    return { data: repeats ? this.publishing.published(owner, request) : await this.publishing.publish(owner, kind, id, request) };
  }
}
