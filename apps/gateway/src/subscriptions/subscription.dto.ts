import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsNotEmpty, IsOptional } from 'class-validator';
import type * as contracts from '#contracts';
import { EVENT_NAME } from '../http/api-docs.js';
import { IsSubscribableEmitter, IsSubscribableStream, IsSubscribingListener } from '../events/event-validators.js';

/** A subscription as the API returns it. */
export class Subscription implements contracts.Subscription {
  @ApiProperty({ type: String, example: 'sub_0Vg2mXq1Zk3TnB7cYw' }) id!: contracts.SubscriptionId;
  @ApiProperty({ description: 'The id of a source or workflow, a glob (`dc_*`, `p_*`) or your user id.' }) emitter_id!: string;
  @ApiProperty({ type: String }) listener_id!: contracts.ListenerId;
  @ApiProperty({ description: 'The event name as it was sent; empty for the default stream.' }) event_name!: string;
}

/** A subscription to every emitter created later, as the API returns it. */
export class AutoSubscription implements contracts.AutoSubscription {
  @ApiProperty({ type: String, example: 'asub_0Vg2mXq1Zk3TnB7cYw' }) id!: contracts.Id<'autoSubscription'>;
  @ApiProperty({ description: 'The event name as it was sent; empty for the default stream.' }) event_name!: string;
  @ApiProperty({ type: String }) listener_id!: contracts.ListenerId;
}

const LISTENER = { minLength: 1, description: 'The id of a source, workflow or webhook.' };

export class SubscriptionParameters {
  @ApiProperty({
    minLength: 1,
    description: 'The id of a source or workflow, `dc_*` (all sources), `p_*` (all workflows) or your user id (all sources and workflows).',
  })
  @IsSubscribableEmitter()
  emitter_id!: string;

  @ApiProperty(LISTENER)
  @IsSubscribingListener()
  listener_id!: string;

  @ApiPropertyOptional({
    ...EVENT_NAME,
    description:
      '`$errors`, `$logs`, `default`, a custom stream, or `*` for the default stream and all custom ones; if empty or omitted, the default stream.',
  })
  @IsOptional()
  @IsSubscribableStream()
  event_name?: string;
}

/** Selects an auto-subscription. Its event name may be empty: earlier versions stored such ones. */
export class AutoSubscriptionParameters {
  @ApiProperty(LISTENER)
  @IsSubscribingListener()
  listener_id!: string;

  @ApiProperty({
    ...EVENT_NAME,
    description: '`$errors`, `$logs`, `default`, a custom stream, or `*` for the default stream and all custom ones.',
  })
  @IsSubscribableStream()
  event_name!: string;
}

export class NewAutoSubscription {
  @ApiProperty(LISTENER)
  @IsSubscribingListener()
  listener_id!: string;

  @ApiProperty({
    ...EVENT_NAME,
    minLength: 1,
    description: '`$errors`, `$logs`, `default`, a custom stream, or `*` for the default stream and all custom ones; not empty.',
  })
  @IsSubscribableStream()
  @IsNotEmpty({ message: 'event_name is required; the default stream is `default`' })
  event_name!: string;
}
