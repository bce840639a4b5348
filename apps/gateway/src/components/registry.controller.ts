import { Controller, Get, Query } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import { listRegistry, type Page, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsWithPage, Documented, Problems } from '../http/api-docs.js';
import { RegisteredComponent } from './component.dto.js';
import { LargePages } from '../http/large-pages.js';
import { PageQuery } from '../http/page.dto.js';

@Documented('components')
@Controller('v1/registry')
export class RegistryController {
  constructor(
    private readonly messages: Messages,
    private readonly pages: LargePages,
  ) {}

  @Get()
  @ApiOperation({ operationId: 'listRegistry', summary: 'List the components of the registry, which every account may use' })
  @RespondsWithPage(RegisteredComponent)
  @Problems(400)
  list(@OwnerId() owner: UserId, @Query() page: PageQuery): Promise<Page<RegisteredComponent>> {
    return this.pages.read(owner, page, (part) => this.messages.request(listRegistry, part, { account: owner }));
  }
}
