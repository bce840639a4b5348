import { type DynamicModule, Module } from '@nestjs/common';
import { readConfig } from '#config';
import { LOG, type Log } from '#observability';
import { Database } from './database.js';

/** The app's database for its repositories. `DATABASE_URL` names the server. */
@Module({})
export class DatabaseModule {
  static forApp(name: string, options: { max?: number } = {}): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      providers: [
        {
          provide: Database,
          inject: [LOG],
          useFactory: (log: Log) =>
            new Database(
              readConfig((env) => env.text('DATABASE_URL')),
              name,
              log,
              options,
            ),
        },
      ],
      exports: [Database],
    };
  }
}
