/**
 * Schemes of URLs: what a store of objects gives so that `open`, `save` and `convert` take its URLs.
 *
 * @packageDocumentation
 */
export type { RedirectPolicy } from './bytes/remote/remote_options.js'
export { registerScheme } from './bytes/remote/schemes.js'
export {
  type ListedObject,
  type RemoteObject,
  type RemoteUpload,
  RetryableError,
  type UrlScheme,
} from './bytes/remote/url_scheme.js'
