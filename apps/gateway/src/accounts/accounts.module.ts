import { Module } from '@nestjs/common';
import { GatewayConfig } from '../gateway.config.js';
import { AccountsRepository } from './accounts.repository.js';
import { AccountsService } from './accounts.service.js';
import { UsersController } from './users.controller.js';

@Module({
  controllers: [UsersController],
  providers: [{ provide: GatewayConfig, useFactory: () => GatewayConfig.read() }, AccountsRepository, AccountsService],
  exports: [AccountsService],
})
export class AccountsModule {}
