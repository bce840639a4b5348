import { Inject, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ownHosts } from '#egress';
import { KafkaClient } from '#messaging';
import { LOG, type Log } from '#observability';

const EVERY_MS = 5 * 60_000;

/**
 * Protects every broker of the cluster from users' connections, not only the bootstrap servers: reads the cluster's metadata before the service
 * starts to work, and again every five minutes.
 */
@Injectable()
export class ProtectedBrokers implements OnModuleInit, OnApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.refresh();
    this.timer = setInterval(() => void this.refresh(), EVERY_MS).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  private async refresh(): Promise<void> {
    try {
      const { brokers } = await this.kafka.withAdmin((admin) => admin.describeCluster());
      ownHosts().setClusterBrokers(brokers);
    } catch (error) {
      // the brokers of the last response stay protected
      this.log.warn({ reason: (error as Error).message }, 'brokers.not-listed');
    }
  }
}

/** For services that call hosts on behalf of users. */
@Module({ providers: [ProtectedBrokers] })
export class ProtectedBrokersModule {}
