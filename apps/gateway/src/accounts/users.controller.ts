import { Controller, Get } from '@nestjs/common';
import { ApiExtraModels, ApiOperation, getSchemaPath } from '@nestjs/swagger';
import { type Caller, Me } from './account.decorator.js';
import { RespondsInline, Documented, SelectsFields } from '../http/api-docs.js';
import { AccountsService } from './accounts.service.js';
import { FreeUser, PaidUser, type User } from './user.dto.js';

@Documented('users')
@Controller('v1/users/me')
export class UsersController {
  constructor(private readonly accounts: AccountsService) {}

  @Get()
  @ApiOperation({ operationId: 'getCurrentUser', summary: 'Get the current user' })
  @SelectsFields()
  @ApiExtraModels(FreeUser, PaidUser)
  @RespondsInline(200, 'UserResponse', 'A free account or a paid one.', {
    anyOf: [{ $ref: getSchemaPath(FreeUser) }, { $ref: getSchemaPath(PaidUser) }],
  })
  async me(@Me() { account, apiKey, scope }: Caller): Promise<{ data: User }> {
    return { data: await this.accounts.describe(account, apiKey, scope) };
  }
}
