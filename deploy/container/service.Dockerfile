# Image of the service, with posture-admin: Node, the programs and the libraries that they load. No
# shell, no package manager, and nothing is extracted at run time. The build context is the output
# directory of `npm run release` (docs/install/containers.md):
#
#   docker build --file deploy/container/service.Dockerfile --build-arg VERSION=0.1.0 \
#     --tag posture-service:0.1.0 release

FROM debian:bookworm-slim AS build

# A minimal Debian may lack only the C++ library, which Node needs.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libstdc++6 \
    && rm -rf /var/lib/apt/lists/*

ARG VERSION
ARG TARGETARCH
WORKDIR /build
COPY posture-service-${VERSION}-linux-*.tar.gz posture-service-${VERSION}-linux-*.tar.gz.sha256 ./

# Verify the archive, and extract the program and its licenses.
RUN set -eu; \
    case "$TARGETARCH" in \
      amd64) machine=x86_64 ;; \
      arm64) machine=arm64 ;; \
      *) echo "there is no release for the machine '$TARGETARCH'" >&2; exit 1 ;; \
    esac; \
    archive="posture-service-$VERSION-linux-$machine.tar.gz"; \
    sha256sum --check "$archive.sha256"; \
    mkdir -p /rootfs/usr; \
    tar -xzf "$archive" -C /rootfs/usr --strip-components=1 --exclude='*/docs' --no-same-owner \
      "posture-service-$VERSION/lib/posture-service" "posture-service-$VERSION/share/doc/posture-service"

# The shared libraries at the paths where the loader finds them, with their licenses, and with the
# package metadata from which scanners read versions.
RUN set -eu; \
    cd /rootfs/usr/lib/posture-service; \
    ldd node ./*.node > /build/libraries; \
    if grep 'not found' /build/libraries; then exit 1; fi; \
    grep -o '/lib[^ ]*' /build/libraries | sort -u > /build/paths; \
    xargs cp --parents --dereference --target-directory=/rootfs < /build/paths; \
    sed 's|.*/|*/|' /build/paths | xargs dpkg-query --search | cut -d: -f1 | sort -u > /build/packages; \
    mkdir -p /rootfs/var/lib/dpkg/status.d /rootfs/etc; \
    cp --dereference /etc/os-release /rootfs/etc/os-release; \
    while read -r package; do \
      cp --parents --dereference --target-directory=/rootfs "/usr/share/doc/$package/copyright"; \
      dpkg-query --status "$package" > "/rootfs/var/lib/dpkg/status.d/$package"; \
    done < /build/packages

# A user, its name, and commands without a shell: `docker exec CONTAINER posture-admin doctor`.
RUN set -eu; \
    cd /rootfs; \
    printf '%s\n' 'root:x:0:0::/:/sbin/nologin' \
      'posture:x:10001:10001::/var/lib/posture-service:/sbin/nologin' > etc/passwd; \
    printf '%s\n' 'root:x:0:' 'posture:x:10001:' > etc/group; \
    printf '%s\n' 'hosts: files dns' > etc/nsswitch.conf; \
    mkdir -p usr/bin run tmp; \
    chmod 1777 tmp; \
    install -d -o 10001 -g 10001 -m 0700 var/lib/posture-service; \
    for command in posture-service posture-admin; do \
      sed -i '1i #!/usr/lib/posture-service/node' "usr/lib/posture-service/$command.cjs"; \
      chmod 0755 "usr/lib/posture-service/$command.cjs"; \
      ln -s "../lib/posture-service/$command.cjs" "usr/bin/$command"; \
    done

# If this works, nothing is missing: it creates a data directory with a store, and reads it again.
RUN set -eu; \
    chroot /rootfs /usr/bin/posture-service --version; \
    chroot /rootfs /usr/bin/posture-admin organization create Acme --domain acme.example --data-dir /tmp/trial; \
    chroot /rootfs /usr/bin/posture-admin doctor --data-dir /tmp/trial; \
    rm -r /rootfs/tmp/trial

FROM scratch

ARG VERSION
ARG REVISION=unknown
LABEL org.opencontainers.image.title="posture-service" \
      org.opencontainers.image.description="Receives events and logs, folds them into discovery scans and serves the read-only REST API." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"

COPY --from=build /rootfs /

# A non-root process uses high ports. The syslog ports are published as 514 (compose.yaml,
# kubernetes/service.yaml).
ENV PATH=/usr/bin \
    SYSLOG_TCP=1514 \
    SYSLOG_UDP=1514
USER 10001:10001
# The store and the self-signed certificate. Nothing else is written.
VOLUME ["/var/lib/posture-service"]
# REST API, HTTPS ingest, syslog over TLS, TCP and UDP.
EXPOSE 8443/tcp 8444/tcp 9443/tcp 6514/tcp 1514/tcp 1514/udp

# Unhealthy while /healthz reports degraded. Its response is in the container's state.
HEALTHCHECK --interval=60s --timeout=10s --start-period=30s --retries=2 CMD ["/usr/lib/posture-service/node", "--max-old-space-size=16", "-e", "require('node:http').get({ host: '127.0.0.1', port: process.env.METRICS_PORT || 9091, path: '/healthz' }, async (answer) => { console.log(Buffer.concat(await answer.toArray()).toString()); process.exit(answer.statusCode === 200 ? 0 : 1) }).on('error', (error) => { console.log(error.message); process.exit(1) })"]

ENTRYPOINT ["/usr/lib/posture-service/node", "/usr/lib/posture-service/posture-service.cjs"]
