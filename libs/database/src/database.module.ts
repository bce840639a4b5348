import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { LOG, type Log } from '#observability';
import { dataSourceOptions } from './data-source.js';
import { DatabaseConfig } from './database.config.js';
import { Database } from './database.js';
import { isTransient } from './database-errors.js';
import type { Schema } from './schema.js';

const DEFAULT_POOL = 10;
/** The start has waited for the database already: these bridge a restart of the server just then. */
const CONNECT = { retryAttempts: 10, retryDelay: 1000, toRetry: isTransient };

@Module({ providers: [{ provide: DatabaseConfig, useFactory: () => DatabaseConfig.read() }], exports: [DatabaseConfig] })
class DatabaseConfigModule {}

/** The app's DataSource, and SQL and transactions on it. Features import `TypeOrmModule.forFeature` for their plain rows. */
@Module({})
export class DatabaseModule {
  /** max: connections of the pool where the configuration does not state a number. */
  static forApp(schema: Schema, { max = DEFAULT_POOL }: { max?: number } = {}): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      imports: [
        TypeOrmModule.forRootAsync({
          imports: [DatabaseConfigModule],
          inject: [DatabaseConfig, LOG],
          useFactory: (config: DatabaseConfig, log: Log) => {
            const connection = { serverUrl: config.serverUrl, name: config.nameOf(schema.app), max: config.pool || max, log };
            return { ...dataSourceOptions(schema, connection), ...CONNECT };
          },
        }),
      ],
      providers: [{ provide: Database, inject: [DataSource], useFactory: (dataSource: DataSource) => new Database(dataSource) }],
      exports: [Database],
    };
  }
}
