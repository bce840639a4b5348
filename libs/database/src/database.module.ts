import { type DynamicModule, Module } from '@nestjs/common';
import { LOG, type Log } from '#observability';
import { DatabaseConfig } from './database.config.js';
import { Database } from './database.js';

const DEFAULT_POOL = 10;

/** The app's database for its repositories. */
@Module({})
export class DatabaseModule {
  /** max: connections of the pool where the configuration does not state a number. */
  static forApp(app: string, { max = DEFAULT_POOL }: { max?: number } = {}): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      providers: [
        {
          provide: Database,
          inject: [LOG],
          useFactory: (log: Log) => {
            const config = DatabaseConfig.read();
            return new Database(config.serverUrl, config.nameOf(app), log, { max: config.pool || max });
          },
        },
      ],
      exports: [Database],
    };
  }
}
