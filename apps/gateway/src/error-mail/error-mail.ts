import type { ErrorRaised } from '#contracts';

/** The text of the mail about an error. */
export function errorMail(
  { subject_id, code, message, raised_at_ms, event_id }: ErrorRaised,
  since: number,
): { subject: string; text: string } {
  const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();
  const rest = since === 0 ? '' : `\nSince the last mail about this error, there were ${since} more of the same kind.\n`;
  return {
    subject: oneLine(`[Sluice] ${code} in ${subject_id}`).slice(0, 200),
    text: `${subject_id} failed at ${new Date(raised_at_ms).toISOString()}.

  ${code}: ${oneLine(message)}
${event_id === undefined ? '' : `\nThe event ${event_id} on its stream $errors has the details.\n`}${rest}
You get at most one mail about this error in 24 hours. To receive every one, subscribe a webhook to the stream $errors.
`,
  };
}
