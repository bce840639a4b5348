import { UnreachableError } from '@sluice/client';
import type { Session } from '../session/session.js';

/** An operation as OpenAPI describes it. */
interface OperationObject {
  operationId: string;
  summary: string;
  parameters?: { name: string; in: string; required?: boolean }[];
  requestBody?: object;
}

interface ApiDocument {
  info: { title: string; version: string };
  paths: Record<string, Record<string, OperationObject>>;
}

/** The OpenAPI document of the server, and the server's time in ms. Throws UnreachableError if the server is not Sluice. */
export async function apiDocument(session: Session): Promise<{ document: ApiDocument; time: number }> {
  const response = await session.request('/openapi.json');
  const document = (await response.json().catch(() => null)) as ApiDocument | null;
  if (document?.info?.title !== 'Sluice')
    throw new UnreachableError(`${session.access.url} did not return the description of Sluice: the URL may be wrong`);
  return { document, time: Date.parse(response.headers.get('date') ?? '') };
}
