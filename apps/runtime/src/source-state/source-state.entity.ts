import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { SourceId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';
import type { DedupeState } from './dedupe.js';

/** An entry of a source's `this.db`. */
@Entity('source_db')
export class SourceDb {
  @PrimaryColumn(BYTEWISE_TEXT)
  source_id!: SourceId;

  @PrimaryColumn(BYTEWISE_TEXT)
  key!: string;

  /** JSON text. */
  @Column('text')
  value!: string;
}

/** The dedupe state of a source. */
@Entity('source_dedupe')
export class SourceDedupe {
  @PrimaryColumn(BYTEWISE_TEXT)
  source_id!: SourceId;

  @Column('json')
  state!: DedupeState;
}
