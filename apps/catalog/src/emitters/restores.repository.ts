import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Entity, In, PrimaryColumn, Repository } from 'typeorm';

/** A restore of the database that was recognised. The row exists until the other services have been sent the states of the restored database. */
@Entity('restore')
export class RestoreRow {
  @PrimaryColumn('uuid')
  id!: string;
}

/** The only writer of the table `restore`. */
@Injectable()
export class RestoresRepository {
  constructor(@InjectRepository(RestoreRow) private readonly rows: Repository<RestoreRow>) {}

  async add(): Promise<void> {
    await this.rows.insert({ id: randomUUID() });
  }

  async ids(): Promise<string[]> {
    return (await this.rows.find()).map(({ id }) => id);
  }

  async remove(ids: string[]): Promise<void> {
    await this.rows.delete({ id: In(ids) });
  }
}
