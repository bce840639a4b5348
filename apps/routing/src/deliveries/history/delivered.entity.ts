import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { WebhookId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';

/** The newest deliveries that succeeded: a row for all deliveries to one webhook within about a second. */
@Entity('delivered')
export class Delivered {
  @PrimaryColumn(BYTEWISE_TEXT)
  webhook_id!: WebhookId;

  @PrimaryColumn('bigint', { generated: 'identity', generatedIdentity: 'ALWAYS' })
  id!: number;

  @Column('integer')
  count!: number;

  /** A JSON array of them. */
  @Column('bytea')
  deliveries!: Buffer;
}
