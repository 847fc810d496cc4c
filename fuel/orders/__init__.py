"""Orders of streams: which examples each item of an epoch is made of.

They are known without reading data, before, during and after an epoch.
"""
from fuel.orders.order import Order
from fuel.orders.table import OrderTable, Place

__all__ = ['Order', 'OrderTable', 'Place']
