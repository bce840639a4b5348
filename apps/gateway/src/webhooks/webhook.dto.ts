import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsBoolean } from 'class-validator';
import type * as contracts from '#contracts';
import { DESCRIPTION_LENGTH, IsWebhookUrl, MayBeAbsent, MayBeDigits, NAME_LENGTH, WEBHOOK_URL_LENGTH, WebhookFields } from '#contracts';
import { DescribesExternalId } from '../http/page.dto.js';

const BURST = "After a pause, Sluice sends a second's worth of deliveries at once, so twice the limit can arrive within a second.";

/** A webhook as the API returns it. Times are Unix seconds. */
export class Webhook implements contracts.Webhook {
  @ApiProperty({ type: String, example: 'wh_0Vg2mXq1Zk3TnB7cYw' }) id!: contracts.WebhookId;
  @ApiPropertyOptional({ type: String, description: 'The owner; omitted in lists.' }) user_id?: contracts.UserId;
  @ApiProperty({ type: String, nullable: true }) name!: string | null;
  @ApiProperty({ type: String, nullable: true }) description!: string | null;
  @ApiProperty({ example: 'https://example.com/hooks' }) url!: string;
  @ApiProperty() active!: boolean;
  @ApiPropertyOptional({ type: 'integer', description: `Deliveries per second; omitted if there is no limit. ${BURST}` })
  rate_limit?: number;
  @ApiPropertyOptional({ description: 'Your own id of it; omitted if there is none.' }) external_id?: string;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) created_at!: number;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) updated_at!: number;
}

const URL = {
  maxLength: WEBHOOK_URL_LENGTH,
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?:',
  description:
    'An http or https URL with a host name; a port and a path are allowed. A user name and a password in it are sent as Basic authentication; responses ' +
    'show them, except to keys of the scope `read`.',
};

export class WebhookParameters extends WebhookFields {
  @ApiPropertyOptional({ type: String, nullable: true, maxLength: NAME_LENGTH })
  override name?: string | null;

  @ApiPropertyOptional({ type: String, nullable: true, maxLength: DESCRIPTION_LENGTH })
  override description?: string | null;

  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: 1,
    maximum: 10_000,
    description: `Deliveries per second; null for no limit. ${BURST}`,
  })
  override rate_limit?: number | null;

  @DescribesExternalId()
  override external_id?: string | null;
}

export class NewWebhookParameters extends WebhookParameters {
  @ApiProperty({ ...URL, required: true })
  @IsWebhookUrl()
  url!: string;

  @MayBeDigits()
  override rate_limit?: number | null;
}

export class UpdateWebhookBody extends WebhookParameters {
  @ApiPropertyOptional(URL)
  @MayBeAbsent()
  @IsWebhookUrl()
  url?: string;

  @ApiPropertyOptional({ type: Boolean, description: 'Events are not delivered to an inactive webhook.' })
  @MayBeAbsent()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean;
}

export class WebhookSecret implements contracts.WebhookSecret {
  @ApiProperty({ example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=' }) secret!: string;
}

export class RotatedWebhookSecret extends WebhookSecret implements contracts.RotatedWebhookSecret {
  @ApiProperty({
    type: 'integer',
    format: 'int64',
    description: 'Unix seconds: until then, deliveries are also signed with the previous secret, unless it is replaced five more times.',
  })
  previous_expires_at!: number;
}
