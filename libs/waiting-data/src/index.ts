export { FullAccounts } from './full-accounts.js';
export { WaitingData, type WaitingDataOptions } from './waiting-data.js';
export { WaitingDataConfig } from './waiting-data.config.js';
export { WaitingDataModule } from './waiting-data.module.js';
export { countRows, changeCountedSize, WaitingEntriesRepository, waitingSchema } from './waiting-entries.js';
