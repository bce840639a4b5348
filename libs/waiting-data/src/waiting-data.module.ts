import { type DynamicModule, Module } from '@nestjs/common';
import { FullAccounts, LISTS_OF_OTHERS, type ListsFullAccounts } from './full-accounts.js';
import { WAITING_DATA, WaitingData, type WaitingDataOptions } from './waiting-data.js';
import { WaitingDataConfig } from './waiting-data.config.js';
import { WaitingEntriesRepository } from './waiting-entries.js';

/** The full accounts, for a service that has to know them. */
@Module({})
export class WaitingDataModule {
  /**
   * @param lists of the other services that have waiting data
   * @param own what the service itself stores; its database has the table `waiting_entry`
   */
  static forApp(lists: ListsFullAccounts[], own?: WaitingDataOptions): DynamicModule {
    const ofOthers = [FullAccounts, { provide: LISTS_OF_OTHERS, useValue: lists }];
    const ofOwn = [
      WaitingData,
      WaitingEntriesRepository,
      { provide: WAITING_DATA, useValue: own },
      { provide: WaitingDataConfig, useFactory: () => WaitingDataConfig.read() },
    ];
    return {
      module: WaitingDataModule,
      global: true,
      providers: own ? [...ofOthers, ...ofOwn] : ofOthers,
      exports: own ? [FullAccounts, WaitingData] : [FullAccounts],
    };
  }
}
