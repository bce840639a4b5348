import { createHash } from 'node:crypto';
import type { Component, ComponentDescription, ComponentId, UserId } from '#contracts';

/** A component with its code, as the repository reads it. */
export interface ComponentRow {
  id: ComponentId;
  /** null: in the registry. */
  owner_id: UserId | null;
  key: string | null;
  name: string;
  version: string | null;
  code: string;
  code_hash: string;
  description: ComponentDescription;
  created_at: Date;
  updated_at: Date;
}

/** What is written of a new component. */
export interface NewComponent {
  id: ComponentId;
  owner_id: UserId | null;
  code: InspectedCode;
  component_url: string | null;
}

/** Code that the runtime has accepted. */
export interface InspectedCode {
  code: string;
  hash: string;
  description: ComponentDescription;
}

/** Lower-case hex SHA-256 of the UTF-8 code exactly as submitted. */
export const codeHash = (code: string): string => createHash('sha256').update(code, 'utf8').digest('hex');

export const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000);

/** As the API answers it. */
export const componentOf = (row: ComponentRow): Component => ({
  id: row.id,
  code: row.code,
  code_hash: row.code_hash,
  name: row.name,
  version: row.version,
  configurable_props: row.description.configurable_props,
  created_at: unixSeconds(row.created_at),
  updated_at: unixSeconds(row.updated_at),
});
