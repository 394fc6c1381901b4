/** Decides where redirects may lead: by host name first, and by address when the connection is made. */
import dns, { type LookupAddress, type LookupOptions } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import { isPublicAddress } from './private_address.js'
import type { CheckedRemoteOptions, RedirectPolicy } from './remote_options.js'
import { urlLabel } from './url_scheme.js'

export class RedirectGuard {
  readonly #original: URL
  readonly #policy: RedirectPolicy

  readonly #isPublicOnly: boolean

  /** @throws TileworkError ERR_IO where only public addresses are allowed and the host of the URL is another */
  constructor(
    original: URL,
    { redirects, addresses }: Pick<CheckedRemoteOptions, 'redirects' | 'addresses'>,
  ) {
    this.#original = original
    this.#policy = redirects
    this.#isPublicOnly = addresses === 'public'
    if (this.#isPublicOnly) checkAddress(original, ownHostError)
  }

  /**
   * The URL that a response redirects to.
   *
   * @throws TileworkError ERR_IO for a location that is not an HTTP URL or not allowed
   */
  target(from: URL, location: string | undefined, label: string): URL {
    if (location === undefined || !URL.canParse(location, from.href)) {
      throw refused(label, 'the redirect has no valid URL')
    }
    const target = new URL(location, from)
    const { protocol } = target
    if (protocol !== 'https:' && protocol !== 'http:') {
      throw refused(label, `the redirect leads to the scheme ${valueText(protocol)}`)
    }
    if (protocol === 'http:' && from.protocol === 'https:') {
      throw refused(
        label,
        'the redirect leads from https: to http:, where others can read and change the bytes',
      )
    }
    if (this.#isPublicOnly) checkAddress(target, ownHostError)
    if (target.host === this.#original.host || this.#policy === 'any') return target
    if (this.#policy === 'same-host') {
      throw refused(
        label,
        `the redirect leads to another host, ${target.host}; the option remote: { redirects: 'public' } allows that`,
      )
    }
    checkAddress(target, privateError)
    return target
  }

  /** Options of a request. They allow only public addresses for other hosts, at every DNS lookup. */
  connectOptions(url: URL): { readonly lookup?: LookupFunction } {
    const isChecked = this.#isPublicOnly || (this.#policy === 'public' && url.host !== this.#original.host)
    if (!isChecked) return {}
    const errorOf = this.#isPublicOnly ? ownHostError : privateError
    const label = urlLabel(url)
    return {
      lookup: (name, options, callback) =>
        lookUpPublic(name, options, callback, (address) => errorOf(label, address)),
    }
  }
}

type AddressError = (label: string, address: string) => TileworkError

/** Checks a host that is an IP address, for which there is no DNS lookup. */
function checkAddress(url: URL, errorOf: AddressError): void {
  const address = hostAddress(url)
  if (isIP(address) !== 0 && !isPublicAddress(address)) throw errorOf(urlLabel(url), address)
}

/** The host without the brackets of an IPv6 address. */
function hostAddress({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

/** Connects to the checked addresses themselves: a second DNS answer could differ (DNS rebinding). */
function lookUpPublic(
  name: string,
  options: LookupOptions,
  callback: Parameters<LookupFunction>[2],
  errorOf: (address: string) => TileworkError,
): void {
  dns.lookup(name, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '')
    const inside = addresses.find(({ address }) => !isPublicAddress(address))
    if (inside) return callback(errorOf(inside.address), '')
    if (options.all) return callback(null, addresses)
    const [first] = addresses as [LookupAddress]
    return callback(null, first.address, first.family)
  })
}

function privateError(label: string, address: string): TileworkError {
  return refused(
    label,
    `a redirect leads to ${address}, which is not a public address; the option remote: { redirects: 'any' } allows that`,
  )
}

function ownHostError(label: string, address: string): TileworkError {
  return refused(label, `the host has the address ${address}, which is not public`)
}

function refused(label: string, reason: string): TileworkError {
  return new TileworkError('ERR_IO', `${label}: ${reason}.`, { path: label })
}
