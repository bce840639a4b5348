import { type DynamicModule, Module } from '@nestjs/common';
import { LOG, type Log } from '#observability';

/** The service's log for every provider. */
@Module({})
export class LogModule {
  static with(log: Log): DynamicModule {
    return { module: LogModule, global: true, providers: [{ provide: LOG, useValue: log }], exports: [LOG] };
  }
}
