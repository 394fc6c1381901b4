/** Which addresses are public: a redirect to another one could reach services that trust this machine (CWE-918). */
import { BlockList, isIP } from 'node:net'

/** Networks that are not reachable from everywhere, by the special-purpose registries of IANA (RFC 6890). */
const NOT_PUBLIC: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

/** Only global unicast is public in IPv6, and of that not the ranges that carry IPv4 addresses or documentation. */
const GLOBAL_UNICAST = ['2000::', 3] as const
const NOT_PUBLIC_IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const blocked = new BlockList()
for (const [network, bits] of NOT_PUBLIC) blocked.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of NOT_PUBLIC_IPV6) blocked.addSubnet(network, bits, 'ipv6')
const global = new BlockList()
// biome-ignore lint/plugin: a pair
global.addSubnet(...GLOBAL_UNICAST, 'ipv6')

/** True for an address that every machine may reach; false also for text that is no address. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !blocked.check(address, 'ipv4')
    case 6:
      return global.check(address, 'ipv6') && !blocked.check(address, 'ipv6')
    default:
      return false
  }
}
