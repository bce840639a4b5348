import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccountRow, ApiKeyRow } from './account.entity.js';
import { AccountsRepository } from './accounts.repository.js';
import { AccountsService } from './accounts.service.js';
import { KeyUses } from './key-uses.js';
import { KeysController } from './keys.controller.js';
import { UsersController } from './users.controller.js';

@Module({
  imports: [TypeOrmModule.forFeature([AccountRow, ApiKeyRow])],
  controllers: [UsersController, KeysController],
  providers: [AccountsRepository, KeyUses, AccountsService],
  exports: [AccountsRepository, AccountsService],
})
export class AccountsModule {}
