import { type AddressGuard, allowPrivateHosts } from '#egress';

const MAX_LENGTH = 2048;

/** The problem of a webhook's URL, or null. */
export function webhookUrlProblem(url: string | null | undefined): string | null {
  if (!url) return 'url is required';
  if (url.length > MAX_LENGTH) return `url must be at most ${MAX_LENGTH} characters long`;
  // URL itself forgives missing slashes, inner line breaks and blanks at the ends
  if (!/^https?:\/\/[^\s/?#\\\p{Cc}][^\s\p{Cc}]*$/iu.test(url) || !URL.canParse(url)) {
    return 'url must contain a protocol, http or https, and a host name, such as https://example.com/hooks';
  }
  return null;
}

/** Why a URL with a literal address may not be called, or null. A name is judged when it is resolved. */
export function privateAddressProblem(url: string | null | undefined, guard: AddressGuard): string | null {
  if (!url) return null;
  const { hostname, port, protocol } = new URL(url);
  const problem = guard.literalProblem(hostname, Number(port) || (protocol === 'https:' ? 443 : 80));
  return problem && `url: ${problem}; ${allowPrivateHosts.name} lists exceptions`;
}
