import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** A record for Kafka that the relay has not sent yet. */
@Entity('outbox')
export class OutboxRecord {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id!: number;

  @Column('text')
  topic!: string;

  @Column('text')
  key!: string;

  @Column('jsonb')
  headers!: Record<string, string>;

  @Column('bytea', { nullable: true })
  value!: Buffer | null;
}
