import { Controller, Get } from '@nestjs/common';
import { AccountsService } from './accounts.service.js';
import type { User } from './account.entity.js';
import { type Caller, Me } from '../auth/account.decorator.js';

@Controller('v1/users/me')
export class UsersController {
  constructor(private readonly accounts: AccountsService) {}

  @Get()
  async me(@Me() { account, apiKey }: Caller): Promise<{ data: User }> {
    return { data: await this.accounts.describe(account, apiKey) };
  }
}
