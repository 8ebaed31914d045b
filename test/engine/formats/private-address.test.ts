import t from 'tap'
import { endBeforePort, isInbound, isPrivateAddress } from '../../../engine/formats/ip-address.ts'

/** The text with other bytes around it. */
function viewOf(text: string): DataView {
  const bytes = Buffer.from(`1${text}1`)
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

function isPrivate(text: string): boolean {
  return isPrivateAddress(viewOf(text), 1, 1 + text.length)
}

t.test('private addresses are recognized', async (t) => {
  const own = ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.0.1', '100.64.0.1', '100.127.9.9']
  for (const text of [...own, 'fc00::1', 'FD12:3456::1', 'fe80::1', 'febf::1']) t.ok(isPrivate(text), text)
})

t.test('public addresses and other text are not private', async (t) => {
  const outside = ['172.15.0.1', '172.32.0.1', '192.169.1.1', '100.63.0.1', '100.128.0.1', '11.0.0.1', '1.10.0.1']
  const none = ['', '1', '10.', '10.0.0', '10.0.0.256', 'fc', 'fdx.example', '192.168.', 'fe80', '172.', '100.64']
  for (const text of [...outside, '109.0.0.1', '2001:db8::1', 'fec0::1', 'ff02::1', ...none])
    t.notOk(isPrivate(text), text)
})

t.test('inbound means from a public to a private address', async (t) => {
  const rows = [
    ['198.51.100.1', '10.0.0.1', true],
    ['10.0.0.2', '10.0.0.1', false],
    ['10.0.0.2', '198.51.100.1', false],
    ['198.51.100.2', '198.51.100.1', false],
    ['', '10.0.0.1', false],
  ] as const
  for (const [source, target, inbound] of rows) {
    const view = viewOf(source + target)
    const middle = 1 + source.length
    t.equal(isInbound(view, 1, middle, middle, middle + target.length), inbound, `${source} ${target}`)
  }
})

t.test('an address ends before its port', async (t) => {
  const rows = [
    ['192.0.2.1:80:X0:pc.example.com', '192.0.2.1'],
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1::X0', '192.0.2.1'],
    [':80:WAN', ''],
    ['[2001:db8::1]:80', '[2001:db8::1]'],
    ['2001:db8::1', '2001:db8::1'],
    ['2001:db8::1:51234', '2001:db8::1'],
    ['2001:db8:1:2:3:4:5:6:443', '2001:db8:1:2:3:4:5:6'],
    // A group of four digits may be part of the address.
    ['2001:db8::1:4433', '2001:db8::1:4433'],
    ['', ''],
  ] as const
  for (const [text, address] of rows) {
    t.equal(text.slice(0, endBeforePort(viewOf(text), 1, 1 + text.length) - 1), address, text)
  }
})
