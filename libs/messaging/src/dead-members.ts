import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Log } from '#observability';
import type { KafkaClient } from './kafka.js';

/** The parts of kafkajs with which its own consumers leave a group. */
interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  findGroupCoordinator(group: { groupId: string }): Promise<{ leaveGroup(member: { groupId: string; memberId: string }): Promise<void> }>;
}
type CreateCluster = (options: object) => Cluster;

/** Identifies this machine until it is started again: process ids are its own. */
function machine(): string {
  try {
    return `${hostname()}-${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').slice(0, 8)}`;
  } catch {
    return hostname();
  }
}

/** The name of this process for the brokers. The ids of its members of consumer groups begin with it. */
export const clientIdOf = (service: string, pid = process.pid): string => `${service}-${machine()}-${pid}`;

/** Whether the process with this client id has died. False for a process on another machine: its state is unknown here. */
export function isDead(clientId: string, own: string, isRunning: (pid: number) => boolean = isRunningHere): boolean {
  // in a container, the process that replaces a dead one often has the same number
  if (clientId === own) return true;
  const prefix = own.slice(0, own.lastIndexOf('-') + 1);
  const pid = clientId.slice(prefix.length);
  return clientId.startsWith(prefix) && /^\d+$/.test(pid) && !isRunning(Number(pid));
}

function isRunningHere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code !== 'ESRCH';
  }
}

/**
 * Removes the members of a group whose process has died on this machine. Otherwise the group waits for a process that was killed until its session
 * ends, and nothing is read meanwhile. Call it before this process joins. Best effort: the session ends anyway.
 */
export async function removeDeadMembers(kafka: KafkaClient, group: string, log: Log): Promise<void> {
  try {
    const dead = await kafka.withAdmin(
      async (admin) => {
        const { groups } = await admin.describeGroups([group]);
        return (groups[0]?.members ?? []).filter(({ clientId }) => isDead(clientId, kafka.clientId)).map(({ memberId }) => memberId);
      },
      { retry: { retries: 1 } },
    );
    if (dead.length === 0) return;
    const symbol = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === 'private:Kafka:createCluster');
    const cluster = (kafka as unknown as Record<symbol, CreateCluster>)[symbol as symbol]?.({ allowAutoTopicCreation: false });
    if (!cluster) return;
    try {
      await cluster.connect();
      const coordinator = await cluster.findGroupCoordinator({ groupId: group });
      for (const memberId of dead) await coordinator.leaveGroup({ groupId: group, memberId });
    } finally {
      await cluster.disconnect();
    }
    log.info({ group, members: dead.length }, 'consumer.dead-members-removed');
  } catch (error) {
    log.debug({ group, err: error }, 'consumer.dead-members-not-removed');
  }
}
