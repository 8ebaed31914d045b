import { type AddressInfo, connect, createServer } from 'node:net'

export interface ConnectProxy {
  readonly url: string
  /** `host:port` of each requested tunnel. */
  readonly asked: string[]
}

/**
 * An HTTP CONNECT proxy that connects every tunnel to loopback. HTTPS_PROXY names the proxy until
 * the test ends.
 */
export async function connectProxy(
  t: { teardown(work: () => unknown): void },
  options: { readonly password?: string } = {},
): Promise<ConnectProxy> {
  const asked: string[] = []
  const proxy = createServer((client) => {
    client.on('error', () => {})
    client.once('data', (head) => {
      const [, host = ''] = /^CONNECT (\S+)/.exec(head.toString()) ?? []
      const { password } = options
      if (password !== undefined) {
        const basic = Buffer.from(decodeURIComponent(password)).toString('base64')
        if (!head.includes(`Basic ${basic}`)) return void client.end('HTTP/1.1 407 Login\r\nContent-Length: 0\r\n\r\n')
      }
      asked.push(host)
      const upstream = connect(Number(host.split(':')[1]), '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'))
      upstream.on('error', () => client.destroy())
      client.pipe(upstream).pipe(client)
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  process.env['HTTPS_PROXY'] = url
  t.teardown(() => {
    delete process.env['HTTPS_PROXY']
    proxy.close()
  })
  return { url, asked }
}
