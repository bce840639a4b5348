import { Catch, type RpcExceptionFilter } from '@nestjs/common';
import { type Observable, throwError } from 'rxjs';

/** Nest converts an error thrown by a handler to "Internal server error"; the transport needs the error itself. */
@Catch()
export class RpcErrors implements RpcExceptionFilter {
  catch(exception: unknown): Observable<never> {
    return throwError(() => exception);
  }
}
