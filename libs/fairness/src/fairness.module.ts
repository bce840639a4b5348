import { Global, Module } from '@nestjs/common';
import { AccountPace } from './account-pace.js';

/** One pace for all that a process does for an account. */
@Global()
@Module({ providers: [AccountPace], exports: [AccountPace] })
export class FairnessModule {}
