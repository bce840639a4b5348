import { isId, type UserId, type WorkflowId } from '#contracts';

/** The content of a record of the topic `workflows`, or a sentence with the reason why it is invalid. */
export type WorkflowRecord =
  { id: WorkflowId; ownerId: UserId; name: string; active: boolean } | { id: WorkflowId; removed: true } | string;

/** Shape of the value: `{id: "p_…", owner_id: "u_…", name, active}`; null removes. The key is the workflow's id. */
export function readWorkflowRecord(key: string | null, value: Buffer | null): WorkflowRecord {
  if (!isId('workflow', key)) return 'the key is not the id of a workflow';
  if (value === null || value.length === 0) return { id: key, removed: true };
  let parsed: unknown;
  try {
    parsed = JSON.parse(value.toString('utf8'));
  } catch (error) {
    return `the value is not JSON: ${(error as Error).message}`;
  }
  if (parsed === null || typeof parsed !== 'object') return 'the value is not an object';
  const { id, owner_id, name, active } = parsed as Record<string, unknown>;
  if (id !== undefined && id !== key) return 'the id in the value is not the key';
  if (!isId('user', owner_id)) return 'owner_id is not the id of an account';
  if (name !== undefined && name !== null && typeof name !== 'string') return 'name is not a string';
  if (active !== undefined && typeof active !== 'boolean') return 'active is not true or false';
  return { id: key, ownerId: owner_id, name: name ?? '', active: active ?? true };
}
